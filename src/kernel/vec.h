/* vec.h - a vocabulary of 16-lane vectors, for the files that are compiled once per instruction set.
 *
 * `vf` is 16 floats, `vi` 16 int32 or 64 bytes. Every operation is one IEEE operation per lane with one
 * rounding, so that a program written in this vocabulary gives the same bits at every level. Plain C
 * defines what an operation means; there fused multiply-add is fmaf. */
#ifndef TG_KERNEL_VEC_H
#define TG_KERNEL_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel/dtype.h"
#include "kernel/isa.h"

enum { VLEN = 16 };

/* Everything is inlined where speed counts; plain C under the sanitizers would take minutes to compile. */
#if defined(TG_DEBUG) && TG_ISA_LEVEL == TG_ISA_scalar
#define VEC static inline
#else
#define VEC static inline __attribute__((always_inline))
#endif

/* Of functions that are made anew for each of many constants: for plain C, and to find mistakes, once will do. */
#if defined(TG_DEBUG) || TG_ISA_LEVEL == TG_ISA_scalar
#define VEC_MANY static
#define VEC_UNROLL
#else
#define VEC_MANY VEC
#define VEC_UNROLL _Pragma("GCC unroll 4")
#endif

/* clang-format off */

#if TG_ISA_LEVEL == TG_ISA_avx512
/* ---- AVX-512 ----------------------------------------------------------------------------- */
#include <immintrin.h>

typedef __m512 vf;
typedef __m512i vi;
typedef int32_t vi_word __attribute__((may_alias, aligned(1)));

VEC vf vf_zero(void) { return _mm512_setzero_ps(); }
VEC vf vf_set1(float x) { return _mm512_set1_ps(x); }
VEC vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
VEC void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
VEC vf vf_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
VEC void vf_store_n(float *p, vf a, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a); }
VEC vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VEC vf vf_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); } /* a b - c */
VEC vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); } /* a > b ? a : b */
VEC vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); } /* a < b ? a : b */
VEC vf vf_abs(vf a) { return _mm512_abs_ps(a); }
/* lanes where a < b: x, elsewhere y */
VEC vf vf_if_less(vf a, vf b, vf x, vf y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x); }
/* lanes from <= i < to: a, elsewhere b */
VEC vf vf_range(vf a, vf b, int from, int to)
{
    return _mm512_mask_blend_ps((__mmask16)(((1u << to) - 1) & ~((1u << from) - 1)), b, a);
}
VEC vf vf_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
VEC void vf_store_f16(void *p, vf a) { _mm256_storeu_si256(p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
VEC vf vf_load_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}
VEC vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
/* the 4 bytes at p in every lane: straight from memory, which costs no more than to load them */
VEC vi vi_all(const void *p) { return _mm512_set1_epi32(*(const vi_word *)p); }
VEC vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
VEC void vi_store(void *p, vi a) { _mm512_storeu_si512(p, a); }
VEC vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
VEC vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
VEC vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
VEC vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
VEC vi vi_and_or(vi a, vi mask, vi b) { return _mm512_ternarylogic_epi32(a, mask, b, 0xea); } /* (a & mask) | b */
VEC vi vi_shr4(vi a) { return _mm512_srli_epi32(a, 4); }
VEC vi vi_shl(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
VEC vi vi_shr(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
VEC vi vi_sar(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); } /* keeps the sign */
/* sets the bits of `mark` in byte b of a lane where bit 4 j + b of the lane of `flags` is set; they are clear */
VEC vi vi_mark(vi a, vi flags, const int j, const int8_t mark)
{
    vi same = _mm512_broadcast_i32x4(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
    vi byte = _mm512_shuffle_epi8(flags, _mm512_add_epi8(same, _mm512_set1_epi8((char)(j / 2))));
    __mmask64 set = _mm512_test_epi8_mask(byte, _mm512_set1_epi32(j % 2 ? (int)0x80402010 : 0x08040201));
    return _mm512_mask_add_epi8(a, set, a, _mm512_set1_epi8(mark));
}
/* each byte, 0 .. 15, as what the table has for it */
VEC vi vi_pick(vi a, const int8_t table[16])
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), a);
}
VEC vi vi_shr16(vi a) { return _mm512_srli_epi32(a, 16); }
VEC vi vi_shl16(vi a) { return _mm512_slli_epi32(a, 16); }
VEC vi vi_shl23(vi a) { return _mm512_slli_epi32(a, 23); }
VEC vf vf_from_int(vi a) { return _mm512_cvtepi32_ps(a); }
VEC vi vi_from_float(vf a) { return _mm512_cvtps_epi32(a); } /* to nearest, ties to even */
VEC vf vf_from_bits(vi a) { return _mm512_castsi512_ps(a); }
VEC vi vf_bits(vf a) { return _mm512_castps_si512(a); }
VEC vi vi_max_unsigned(vi a, vi b) { return _mm512_max_epu32(a, b); }
VEC void vi_store_s8(int8_t *p, vi a) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a)); }
VEC void vi_store_s16(int16_t *p, vi a) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a)); }
/* 16 and 32 signed bytes: a lane each, and two 16-bit halves of a lane */
VEC vi vi_load_s8(const int8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
VEC vi vi_load_u8(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
VEC vi vi_load_s8_pairs(const int8_t *p) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
/* the low nibbles of 32 bytes, or the high ones, as what the table has for them, in 16-bit halves of lanes */
VEC vi vi_pick_pairs(const uint8_t *p, bool high, const int8_t table[16])
{
    __m256i code = _mm256_loadu_si256((const __m256i *)p);
    code = _mm256_and_si256(high ? _mm256_srli_epi16(code, 4) : code, _mm256_set1_epi8(15));
    __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return _mm512_cvtepi8_epi16(_mm256_shuffle_epi8(all, code));
}
/* lane i gets what lane i ^ by has; by: 1, 2, 4 or 8 */
VEC vf vf_swap(vf a, int by)
{
    return by == 8   ? _mm512_shuffle_f32x4(a, a, 0x4e)
           : by == 4 ? _mm512_shuffle_f32x4(a, a, 0xb1)
           : by == 2 ? _mm512_permute_ps(a, 0x4e)
                     : _mm512_permute_ps(a, 0xb1);
}
/* the low halves of the lanes, as float16 */
VEC vf vf_from_low_f16(vi a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }
/* acc + sum over 2 halves of signed 16-bit x times the 2 at a */
VEC vi vi_dot2_all(vi acc, vi x, const int16_t *a)
{
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(x), "m"(*(const vi_word *)a));
    return acc;
}
/* a * 2^n, n whole and -126 to 127; 0 where x < low, whatever a and n are there */
VEC vf vf_scale_above(vf a, vf n, vf x, float low)
{
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, vf_set1(low), _CMP_NLT_UQ), a, n);
}
/* acc + sum over 4 bytes of unsigned code times signed byte of the 4 at a; `narrow`: codes are below 128 */
VEC vi vi_dot4(vi acc, vi codes, const int8_t *a, int narrow)
{
    (void)narrow;
    return _mm512_dpbusd_epi32(acc, codes, vi_all(a));
}
/* The same where nothing else reads those 4 bytes (vf_fma_all says why). */
VEC vi vi_dot4_all(vi acc, vi codes, const int8_t *a, int narrow)
{
    (void)narrow;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(codes), "m"(*(const vi_word *)a));
    return acc;
}
/* bytes 0 .. 15 of the rows i, 4 + i, 8 + i and 12 + i, in four quarters */
VEC void quarters16(const uint8_t *p, size_t stride, vi z[4])
{
    for (size_t i = 0; i < 4; i++, p += stride) {
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 8 * stride)), 2);
        z[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 12 * stride)), 3);
    }
}
/* 16 rows of 16 bytes, `stride` apart: out[j] has bytes 4j .. 4j+3 of row i in lane i */
VEC void vi_rows16(const uint8_t *p, size_t stride, vi out[4])
{
    vi z[4];
    quarters16(p, stride, z);
    vi t0 = _mm512_unpacklo_epi32(z[0], z[1]), t1 = _mm512_unpackhi_epi32(z[0], z[1]);
    vi t2 = _mm512_unpacklo_epi32(z[2], z[3]), t3 = _mm512_unpackhi_epi32(z[2], z[3]);
    out[0] = _mm512_unpacklo_epi64(t0, t2);
    out[1] = _mm512_unpackhi_epi64(t0, t2);
    out[2] = _mm512_unpacklo_epi64(t1, t3);
    out[3] = _mm512_unpackhi_epi64(t1, t3);
}
/* the first 4 bytes of 16 rows, of which 16 are read */
VEC vi vi_first16(const uint8_t *p, size_t stride)
{
    vi z[4];
    quarters16(p, stride, z);
    return _mm512_unpacklo_epi64(_mm512_unpacklo_epi32(z[0], z[1]), _mm512_unpacklo_epi32(z[2], z[3]));
}
VEC vf vf_fold(vf a, int by) /* lane i gets a[i] + a[i + by], for the lower lanes */
{
    return _mm512_add_ps(a, vf_swap(a, by));
}
VEC float vf_sum(vf a)
{
    return _mm512_cvtss_f32(vf_fold(vf_fold(vf_fold(vf_fold(a, 8), 4), 2), 1));
}
VEC float vf_hmax(vf a) { return _mm512_reduce_max_ps(a); } /* of numbers: no NaN */
VEC float vf_first(vf a) { return _mm512_cvtss_f32(a); } /* lane 0 */
/* acc + sum over 2 bfloat16 of x times those of b2, rounded as the processor likes. Few processors of
 * this level have it (tg_isa_has_bf16), so the compiler is not told that it may be used elsewhere. */
VEC vf vf_dot_bf16(vf acc, vi x, int32_t b2)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(x), "v"(_mm512_set1_epi32(b2)));
    return acc;
}
/* *x times b + c. The compiler would load x into all lanes once for several of these, which on Zen 4 costs the
 * conversions beside it a fifth of their speed: there it is free inside the product. */
VEC vf vf_fma_all(const float *x, vf b, vf c)
{
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*x));
    return c;
}
/* bfloat16 to nearest, ties to even; with the same processors */
VEC void vf_store_bf16(uint16_t *p, vf a)
{
    __m256i h;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(h) : "v"(a));
    _mm256_storeu_si256((__m256i *)p, h);
}
/* a bit for each lane, set unless a <= b: for NaN too */
VEC unsigned vf_not_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ); }
/* a, of which the compiler no longer knows where it came from, so that nothing is hoisted or left out */
VEC vi vi_hide(vi a) { __asm__ volatile("" : "+v"(a)); return a; }

#elif TG_ISA_LEVEL == TG_ISA_avx2
/* ---- AVX2 -------------------------------------------------------------------------------- */
#include <immintrin.h>

typedef struct { __m256 l, h; } vf;
typedef struct { __m256i l, h; } vi;
typedef int32_t vi_word __attribute__((may_alias, aligned(1)));

#define VF2(x, y) ((vf){(x), (y)})
#define VI2(x, y) ((vi){(x), (y)})

VEC vf vf_zero(void) { return VF2(_mm256_setzero_ps(), _mm256_setzero_ps()); }
VEC vf vf_set1(float x) { __m256 v = _mm256_set1_ps(x); return VF2(v, v); }
VEC vf vf_load(const float *p) { return VF2(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
VEC void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a.l); _mm256_storeu_ps(p + 8, a.h); }
VEC vf vf_load_n(const float *p, int n)
{
    float t[16] = {0};
    memcpy(t, p, (size_t)n * 4);
    return vf_load(t);
}
VEC void vf_store_n(float *p, vf a, int n)
{
    float t[16];
    vf_store(t, a);
    memcpy(p, t, (size_t)n * 4);
}
VEC vf vf_add(vf a, vf b) { return VF2(_mm256_add_ps(a.l, b.l), _mm256_add_ps(a.h, b.h)); }
VEC vf vf_sub(vf a, vf b) { return VF2(_mm256_sub_ps(a.l, b.l), _mm256_sub_ps(a.h, b.h)); }
VEC vf vf_mul(vf a, vf b) { return VF2(_mm256_mul_ps(a.l, b.l), _mm256_mul_ps(a.h, b.h)); }
VEC vf vf_div(vf a, vf b) { return VF2(_mm256_div_ps(a.l, b.l), _mm256_div_ps(a.h, b.h)); }
VEC vf vf_fma(vf a, vf b, vf c) { return VF2(_mm256_fmadd_ps(a.l, b.l, c.l), _mm256_fmadd_ps(a.h, b.h, c.h)); }
VEC vf vf_fms(vf a, vf b, vf c) { return VF2(_mm256_fmsub_ps(a.l, b.l, c.l), _mm256_fmsub_ps(a.h, b.h, c.h)); }
VEC vf vf_max(vf a, vf b) { return VF2(_mm256_max_ps(a.l, b.l), _mm256_max_ps(a.h, b.h)); }
VEC vf vf_min(vf a, vf b) { return VF2(_mm256_min_ps(a.l, b.l), _mm256_min_ps(a.h, b.h)); }
VEC vf vf_abs(vf a)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return VF2(_mm256_andnot_ps(sign, a.l), _mm256_andnot_ps(sign, a.h));
}
VEC vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return VF2(_mm256_blendv_ps(y.l, x.l, _mm256_cmp_ps(a.l, b.l, _CMP_LT_OQ)),
               _mm256_blendv_ps(y.h, x.h, _mm256_cmp_ps(a.h, b.h, _CMP_LT_OQ)));
}
VEC vf vf_range(vf a, vf b, int from, int to)
{
    float t[16], u[16];
    vf_store(t, b);
    vf_store(u, a);
    for (int i = from; i < to; i++)
        t[i] = u[i];
    return vf_load(t);
}
VEC vf vf_load_f16(const void *p)
{
    const __m128i *q = p;
    return VF2(_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1)));
}
VEC void vf_store_f16(void *p, vf a)
{
    __m128i *q = p;
    _mm_storeu_si128(q, _mm256_cvtps_ph(a.l, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128(q + 1, _mm256_cvtps_ph(a.h, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VEC vf vf_load_bf16(const void *p)
{
    const __m128i *q = p;
    return VF2(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q)), 16)),
               _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1)), 16)));
}
VEC vi vi_set1(int32_t x) { __m256i v = _mm256_set1_epi32(x); return VI2(v, v); }
VEC vi vi_all(const void *p) { return vi_set1(*(const vi_word *)p); }
VEC vi vi_load(const void *p) { const __m256i *q = p; return VI2(_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)); }
VEC void vi_store(void *p, vi a) { __m256i *q = p; _mm256_storeu_si256(q, a.l); _mm256_storeu_si256(q + 1, a.h); }
VEC vi vi_add(vi a, vi b) { return VI2(_mm256_add_epi32(a.l, b.l), _mm256_add_epi32(a.h, b.h)); }
VEC vi vi_and(vi a, vi b) { return VI2(_mm256_and_si256(a.l, b.l), _mm256_and_si256(a.h, b.h)); }
VEC vi vi_xor(vi a, vi b) { return VI2(_mm256_xor_si256(a.l, b.l), _mm256_xor_si256(a.h, b.h)); }
VEC vi vi_or(vi a, vi b) { return VI2(_mm256_or_si256(a.l, b.l), _mm256_or_si256(a.h, b.h)); }
VEC vi vi_and_or(vi a, vi mask, vi b) { return vi_or(vi_and(a, mask), b); }
VEC vi vi_shl(vi a, int n) { return VI2(_mm256_slli_epi32(a.l, n), _mm256_slli_epi32(a.h, n)); }
VEC vi vi_shr(vi a, int n) { return VI2(_mm256_srli_epi32(a.l, n), _mm256_srli_epi32(a.h, n)); }
VEC vi vi_sar(vi a, int n) { return VI2(_mm256_srai_epi32(a.l, n), _mm256_srai_epi32(a.h, n)); }
VEC __m256i mark8(__m256i a, __m256i flags, const int j, const int8_t mark)
{
    __m256i same = _mm256_broadcastsi128_si256(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
    __m256i one = _mm256_set1_epi32(j % 2 ? (int)0x80402010 : 0x08040201);
    __m256i byte = _mm256_shuffle_epi8(flags, _mm256_add_epi8(same, _mm256_set1_epi8((char)(j / 2))));
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(byte, one), one);
    return _mm256_or_si256(a, _mm256_and_si256(set, _mm256_set1_epi8(mark)));
}
VEC vi vi_mark(vi a, vi flags, const int j, const int8_t mark)
{
    return VI2(mark8(a.l, flags.l, j, mark), mark8(a.h, flags.h, j, mark));
}
VEC vi vi_pick(vi a, const int8_t table[16])
{
    __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return VI2(_mm256_shuffle_epi8(all, a.l), _mm256_shuffle_epi8(all, a.h));
}
VEC vi vi_shr4(vi a) { return VI2(_mm256_srli_epi32(a.l, 4), _mm256_srli_epi32(a.h, 4)); }
VEC vi vi_shr16(vi a) { return VI2(_mm256_srli_epi32(a.l, 16), _mm256_srli_epi32(a.h, 16)); }
VEC vi vi_shl16(vi a) { return VI2(_mm256_slli_epi32(a.l, 16), _mm256_slli_epi32(a.h, 16)); }
VEC vi vi_shl23(vi a) { return VI2(_mm256_slli_epi32(a.l, 23), _mm256_slli_epi32(a.h, 23)); }
VEC vf vf_from_int(vi a) { return VF2(_mm256_cvtepi32_ps(a.l), _mm256_cvtepi32_ps(a.h)); }
VEC vi vi_from_float(vf a) { return VI2(_mm256_cvtps_epi32(a.l), _mm256_cvtps_epi32(a.h)); }
VEC vf vf_from_bits(vi a) { return VF2(_mm256_castsi256_ps(a.l), _mm256_castsi256_ps(a.h)); }
VEC vi vf_bits(vf a) { return VI2(_mm256_castps_si256(a.l), _mm256_castps_si256(a.h)); }
VEC vi vi_max_unsigned(vi a, vi b) { return VI2(_mm256_max_epu32(a.l, b.l), _mm256_max_epu32(a.h, b.h)); }
VEC __m128i vi_pack16(__m256i a) /* low halves of 8 lanes */
{
    const __m256i pick = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1,
                                          0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i s = _mm256_shuffle_epi8(a, pick);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(s, 0x08));
}
VEC void vi_store_s8(int8_t *p, vi a)
{
    __m128i w = _mm_packs_epi16(vi_pack16(a.l), vi_pack16(a.h));
    _mm_storeu_si128((__m128i *)p, w);
}
VEC void vi_store_s16(int16_t *p, vi a)
{
    _mm_storeu_si128((__m128i *)p, vi_pack16(a.l));
    _mm_storeu_si128((__m128i *)p + 1, vi_pack16(a.h));
}
VEC vi vi_load_s8(const int8_t *p)
{
    return VI2(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)),
               _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))));
}
VEC vi vi_load_u8(const uint8_t *p)
{
    return VI2(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)),
               _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))));
}
VEC vi vi_load_s8_pairs(const int8_t *p)
{
    return VI2(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)),
               _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p + 1)));
}
VEC vi vi_pick_pairs(const uint8_t *p, bool high, const int8_t table[16])
{
    __m256i code = _mm256_loadu_si256((const __m256i *)p);
    code = _mm256_and_si256(high ? _mm256_srli_epi16(code, 4) : code, _mm256_set1_epi8(15));
    code = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table)), code);
    return VI2(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(code)),
               _mm256_cvtepi8_epi16(_mm256_extracti128_si256(code, 1)));
}
VEC vf vf_swap(vf a, int by)
{
    return by == 8   ? VF2(a.h, a.l)
           : by == 4 ? VF2(_mm256_permute2f128_ps(a.l, a.l, 1), _mm256_permute2f128_ps(a.h, a.h, 1))
           : by == 2 ? VF2(_mm256_permute_ps(a.l, 0x4e), _mm256_permute_ps(a.h, 0x4e))
                     : VF2(_mm256_permute_ps(a.l, 0xb1), _mm256_permute_ps(a.h, 0xb1));
}
VEC vf vf_from_low_f16(vi a) { return VF2(_mm256_cvtph_ps(vi_pack16(a.l)), _mm256_cvtph_ps(vi_pack16(a.h))); }
VEC vi vi_dot2_all(vi acc, vi x, const int16_t *a)
{
    __m256i all = _mm256_set1_epi32(*(const vi_word *)a);
    return VI2(_mm256_add_epi32(acc.l, _mm256_madd_epi16(x.l, all)),
               _mm256_add_epi32(acc.h, _mm256_madd_epi16(x.h, all)));
}
VEC __m256i dot4_half(__m256i acc, __m256i codes, __m256i a, int narrow)
{
    if (narrow) /* 127 * 127 * 2 fits 16 bits: nothing saturates */
        return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, a), _mm256_set1_epi16(1)));
    __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(0xff)), odd = _mm256_srli_epi16(codes, 8);
    __m256i ae = _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), ao = _mm256_srai_epi16(a, 8);
    acc = _mm256_add_epi32(acc, _mm256_madd_epi16(even, ae));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(odd, ao));
}
VEC vi vi_dot4(vi acc, vi codes, const int8_t *a, int narrow)
{
    __m256i all = vi_all(a).l;
    return VI2(dot4_half(acc.l, codes.l, all, narrow), dot4_half(acc.h, codes.h, all, narrow));
}
VEC void halves8(const uint8_t *p, size_t stride, __m256i z[4])
{
    for (size_t i = 0; i < 4; i++, p += stride)
        z[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)),
                                       _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
}
VEC __m256i first8(const uint8_t *p, size_t stride)
{
    __m256i z[4];
    halves8(p, stride, z);
    return _mm256_unpacklo_epi64(_mm256_unpacklo_epi32(z[0], z[1]), _mm256_unpacklo_epi32(z[2], z[3]));
}
VEC vi vi_first16(const uint8_t *p, size_t stride)
{
    return VI2(first8(p, stride), first8(p + 8 * stride, stride));
}
VEC void rows8(const uint8_t *p, size_t stride, __m256i out[4])
{
    __m256i z[4];
    halves8(p, stride, z);
    __m256i t0 = _mm256_unpacklo_epi32(z[0], z[1]), t1 = _mm256_unpackhi_epi32(z[0], z[1]);
    __m256i t2 = _mm256_unpacklo_epi32(z[2], z[3]), t3 = _mm256_unpackhi_epi32(z[2], z[3]);
    out[0] = _mm256_unpacklo_epi64(t0, t2);
    out[1] = _mm256_unpackhi_epi64(t0, t2);
    out[2] = _mm256_unpacklo_epi64(t1, t3);
    out[3] = _mm256_unpackhi_epi64(t1, t3);
}
VEC void vi_rows16(const uint8_t *p, size_t stride, vi out[4])
{
    __m256i l[4], h[4];
    rows8(p, stride, l);
    rows8(p + 8 * stride, stride, h);
    for (int j = 0; j < 4; j++)
        out[j] = VI2(l[j], h[j]);
}
VEC float vf_sum(vf a)
{
    __m256 s8 = _mm256_add_ps(a.l, a.h);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
VEC float vf_hmax(vf a)
{
    __m256 m8 = _mm256_max_ps(a.l, a.h);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_shuffle_ps(m2, m2, 1)));
}
VEC float vf_first(vf a) { return _mm256_cvtss_f32(a.l); }
VEC unsigned vf_not_le(vf a, vf b)
{
    int l = _mm256_movemask_ps(_mm256_cmp_ps(a.l, b.l, _CMP_NLE_UQ));
    int h = _mm256_movemask_ps(_mm256_cmp_ps(a.h, b.h, _CMP_NLE_UQ));
    return (unsigned)(l | h << 8);
}
VEC vi vi_hide(vi a) { __asm__ volatile("" : "+x"(a.l), "+x"(a.h)); return a; }

#else
/* ---- plain C: the meaning ------------------------------------------------------------------ */

typedef struct { float f[16]; } vf;
typedef struct { int32_t i[16]; } vi;

#define LANES for (int i = 0; i < 16; i++)

VEC vf vf_set1(float x) { vf r; LANES r.f[i] = x; return r; }
VEC vf vf_zero(void) { return vf_set1(0.0f); }
VEC vf vf_load(const float *p) { vf r; memcpy(&r, p, sizeof r); return r; }
VEC void vf_store(float *p, vf a) { memcpy(p, &a, sizeof a); }
VEC vf vf_load_n(const float *p, int n) { vf r = vf_zero(); memcpy(&r, p, (size_t)n * 4); return r; }
VEC void vf_store_n(float *p, vf a, int n) { memcpy(p, &a, (size_t)n * 4); }
VEC vf vf_add(vf a, vf b) { vf r; LANES r.f[i] = a.f[i] + b.f[i]; return r; }
VEC vf vf_sub(vf a, vf b) { vf r; LANES r.f[i] = a.f[i] - b.f[i]; return r; }
VEC vf vf_mul(vf a, vf b) { vf r; LANES r.f[i] = a.f[i] * b.f[i]; return r; }
VEC vf vf_div(vf a, vf b) { vf r; LANES r.f[i] = a.f[i] / b.f[i]; return r; }
VEC vf vf_fma(vf a, vf b, vf c) { vf r; LANES r.f[i] = fmaf(a.f[i], b.f[i], c.f[i]); return r; }
VEC vf vf_fms(vf a, vf b, vf c) { vf r; LANES r.f[i] = fmaf(a.f[i], b.f[i], -c.f[i]); return r; }
VEC vf vf_max(vf a, vf b) { vf r; LANES r.f[i] = a.f[i] > b.f[i] ? a.f[i] : b.f[i]; return r; }
VEC vf vf_min(vf a, vf b) { vf r; LANES r.f[i] = a.f[i] < b.f[i] ? a.f[i] : b.f[i]; return r; }
VEC vf vf_abs(vf a) { vf r; LANES r.f[i] = fabsf(a.f[i]); return r; }
VEC vf vf_if_less(vf a, vf b, vf x, vf y) { vf r; LANES r.f[i] = a.f[i] < b.f[i] ? x.f[i] : y.f[i]; return r; }
VEC vf vf_range(vf a, vf b, int from, int to) { vf r; LANES r.f[i] = i >= from && i < to ? a.f[i] : b.f[i]; return r; }
VEC vf vf_load_f16(const void *p)
{
    uint16_t h[16];
    memcpy(h, p, sizeof h);
    vf r;
    LANES r.f[i] = tg_f16_to_f32(h[i]);
    return r;
}
VEC void vf_store_f16(void *p, vf a)
{
    uint16_t h[16];
    LANES h[i] = tg_f32_to_f16(a.f[i]);
    memcpy(p, h, sizeof h);
}
VEC vi vi_set1(int32_t x) { vi r; LANES r.i[i] = x; return r; }
VEC vi vi_all(const void *p) { int32_t x; memcpy(&x, p, 4); return vi_set1(x); }
VEC vi vi_load(const void *p) { vi r; memcpy(&r, p, sizeof r); return r; }
VEC void vi_store(void *p, vi a) { memcpy(p, &a, sizeof a); }
VEC vi vi_add(vi a, vi b) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] + (uint32_t)b.i[i]); return r; }
VEC vi vi_and(vi a, vi b) { vi r; LANES r.i[i] = a.i[i] & b.i[i]; return r; }
VEC vi vi_xor(vi a, vi b) { vi r; LANES r.i[i] = a.i[i] ^ b.i[i]; return r; }
VEC vi vi_or(vi a, vi b) { vi r; LANES r.i[i] = a.i[i] | b.i[i]; return r; }
VEC vi vi_and_or(vi a, vi mask, vi b) { return vi_or(vi_and(a, mask), b); }
VEC vi vi_shl(vi a, int n) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] << n); return r; }
VEC vi vi_shr(vi a, int n) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] >> n); return r; }
VEC vi vi_sar(vi a, int n) { vi r; LANES r.i[i] = a.i[i] >> n; return r; }
VEC vi vi_mark(vi a, vi flags, const int j, const int8_t mark)
{
    LANES for (int b = 0; b < 4; b++)
        a.i[i] |= ((uint32_t)flags.i[i] >> (4 * j + b) & 1) ? (int32_t)((uint32_t)(uint8_t)mark << 8 * b) : 0;
    return a;
}
VEC vi vi_pick(vi a, const int8_t table[16])
{
    uint8_t c[64];
    memcpy(c, &a, 64);
    for (int i = 0; i < 64; i++)
        c[i] = (uint8_t)table[c[i]];
    return vi_load(c);
}
VEC vi vi_shr4(vi a) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] >> 4); return r; }
VEC vi vi_shr16(vi a) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] >> 16); return r; }
VEC vi vi_shl16(vi a) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] << 16); return r; }
VEC vi vi_shl23(vi a) { vi r; LANES r.i[i] = (int32_t)((uint32_t)a.i[i] << 23); return r; }
VEC vf vf_from_int(vi a) { vf r; LANES r.f[i] = (float)a.i[i]; return r; }
VEC vi vi_from_float(vf a)
{
    vi r; /* the sum with 1.5 * 2^23 rounds to an integer, ties to even */
    LANES r.i[i] = fabsf(a.f[i]) < 4194304.0f ? (int32_t)((a.f[i] + 12582912.0f) - 12582912.0f) : INT32_MIN;
    return r;
}
VEC vf vf_from_bits(vi a) { vf r; memcpy(&r, &a, sizeof r); return r; }
VEC vi vf_bits(vf a) { vi r; memcpy(&r, &a, sizeof r); return r; }
VEC vi vi_max_unsigned(vi a, vi b)
{
    LANES a.i[i] = (uint32_t)a.i[i] > (uint32_t)b.i[i] ? a.i[i] : b.i[i];
    return a;
}
VEC vf vf_load_bf16(const void *p)
{
    uint16_t h[16];
    memcpy(h, p, sizeof h);
    vi r;
    LANES r.i[i] = (int32_t)((uint32_t)h[i] << 16);
    return vf_from_bits(r);
}
VEC void vi_store_s8(int8_t *p, vi a) { LANES p[i] = (int8_t)a.i[i]; }
VEC void vi_store_s16(int16_t *p, vi a) { LANES p[i] = (int16_t)a.i[i]; }
VEC vi vi_load_s8(const int8_t *p) { vi r; LANES r.i[i] = p[i]; return r; }
VEC vi vi_load_u8(const uint8_t *p) { vi r; LANES r.i[i] = p[i]; return r; }
VEC vi vi_load_s8_pairs(const int8_t *p)
{
    int16_t h[32];
    for (int i = 0; i < 32; i++)
        h[i] = p[i];
    return vi_load(h);
}
VEC vi vi_pick_pairs(const uint8_t *p, bool high, const int8_t table[16])
{
    int16_t h[32];
    for (int i = 0; i < 32; i++)
        h[i] = table[p[i] >> (high ? 4 : 0) & 15];
    return vi_load(h);
}
VEC vf vf_swap(vf a, int by) { vf r; LANES r.f[i] = a.f[i ^ by]; return r; }
VEC vf vf_from_low_f16(vi a) { vf r; LANES r.f[i] = tg_f16_to_f32((uint16_t)a.i[i]); return r; }
VEC vi vi_dot2_all(vi acc, vi x, const int16_t *a)
{
    int16_t h[32];
    memcpy(h, &x, 64);
    LANES acc.i[i] += h[2 * i] * a[0] + h[2 * i + 1] * a[1];
    return acc;
}
VEC vi vi_dot4(vi acc, vi codes, const int8_t *a, int narrow)
{
    (void)narrow;
    uint8_t c[64];
    memcpy(c, &codes, 64);
    LANES acc.i[i] += c[4 * i] * a[0] + c[4 * i + 1] * a[1] + c[4 * i + 2] * a[2] + c[4 * i + 3] * a[3];
    return acc;
}
VEC vi vi_dot4_all(vi acc, vi codes, const int8_t *a, int narrow) { return vi_dot4(acc, codes, a, narrow); }
VEC vi vi_first16(const uint8_t *p, size_t stride)
{
    vi r;
    LANES memcpy(&r.i[i], p + (size_t)i * stride, 4);
    return r;
}
VEC void vi_rows16(const uint8_t *p, size_t stride, vi out[4])
{
    for (int j = 0; j < 4; j++)
        out[j] = vi_first16(p + 4 * j, stride);
}
VEC float vf_sum(vf a)
{
    for (int by = 8; by; by /= 2)
        for (int i = 0; i < by; i++)
            a.f[i] += a.f[i + by];
    return a.f[0];
}
VEC float vf_hmax(vf a)
{
    float m = a.f[0];
    LANES m = a.f[i] > m ? a.f[i] : m;
    return m;
}
VEC float vf_first(vf a) { return a.f[0]; }
VEC unsigned vf_not_le(vf a, vf b) { unsigned r = 0; LANES r |= (unsigned)!(a.f[i] <= b.f[i]) << i; return r; }
VEC vi vi_hide(vi a) { __asm__ volatile("" : "+m"(a)); return a; }
#undef LANES
#endif

/* clang-format on */
/* ---- what follows is written in the vocabulary ---------------------------------------------- */

#if TG_ISA_LEVEL == TG_ISA_avx2
/* The compiler would add up the terms of two sums as trees, for which there are not enough registers. What it cannot
 * see through it adds as it comes. */
#define HIDE_SUM(l, h) __asm__("" : "+x"(l), "+x"(h))
#endif

/* acc[r] + the sums over n vectors of codes up to `most` times the 4 n bytes at a + r * stride, which are not -128,
 * for R rows. With AVX2 terms are added in 16 bits as long as there is room, for codes of 8 bits those of the low and
 * of the high 4 apart. */
VEC void vi_dot_rows(vi *acc, const int R, const vi *codes, const int8_t *a, size_t stride, const int n,
                     const int most)
{
#if TG_ISA_LEVEL == TG_ISA_avx2
    const int n_parts = most > 127 ? 2 : 1, room = 32767 / (2 * 127 * (n_parts == 2 ? 15 : most));
    const int run = room >= n ? n : room >= 4 ? 4 : 2;
    const __m256i one = _mm256_set1_epi16(1), low = _mm256_set1_epi8(15);
    for (int j = 0; j < n; j += run) {
        __m256i l[2][2], h[2][2];
        for (int k = j; k < j + run; k++)
            for (int i = 0; i < n_parts; i++) {
                __m256i cl = codes[k].l, ch = codes[k].h;
                if (n_parts == 2) {
                    cl = _mm256_and_si256(i ? _mm256_srli_epi16(cl, 4) : cl, low);
                    ch = _mm256_and_si256(i ? _mm256_srli_epi16(ch, 4) : ch, low);
                }
                for (int r = 0; r < R; r++) {
                    const __m256i all = vi_all(a + (size_t)r * stride + 4 * k).l;
                    const __m256i pl = _mm256_maddubs_epi16(cl, all), ph = _mm256_maddubs_epi16(ch, all);
                    l[i][r] = k == j ? pl : _mm256_add_epi16(l[i][r], pl);
                    h[i][r] = k == j ? ph : _mm256_add_epi16(h[i][r], ph);
                    HIDE_SUM(l[i][r], h[i][r]);
                }
            }
        for (int r = 0; r < R; r++)
            for (int i = 0; i < n_parts; i++) {
                const __m256i pl = _mm256_madd_epi16(l[i][r], one), ph = _mm256_madd_epi16(h[i][r], one);
                acc[r].l = _mm256_add_epi32(acc[r].l, i ? _mm256_slli_epi32(pl, 4) : pl);
                acc[r].h = _mm256_add_epi32(acc[r].h, i ? _mm256_slli_epi32(ph, 4) : ph);
                if (R > 1)
                    HIDE_SUM(acc[r].l, acc[r].h);
            }
    }
#else
    for (int r = 0; r < R; r++)
        for (int j = 0; j < n; j++)
            acc[r] = vi_dot4_all(acc[r], codes[j], a + (size_t)r * stride + 4 * j, most <= 127);
#endif
}

/* The first and the second bfloat16 of each dword. */
VEC vf vf_bf16_first(vi x)
{
    return vf_from_bits(vi_shl16(x));
}

VEC vf vf_bf16_second(vi x)
{
    return vf_from_bits(vi_and(x, vi_set1((int32_t)0xffff0000)));
}

/* bfloat16 in the low halves, to nearest, ties to even; NaN for what is not finite. */
VEC vi vi_to_bf16(vf x)
{
    vi bits = vf_bits(vf_if_less(vf_abs(x), vf_set1(INFINITY), x, vf_from_bits(vi_set1(0x7fc00000))));
    return vi_shr16(vi_add(bits, vi_add(vi_set1(0x7fff), vi_and(vi_shr16(bits), vi_set1(1)))));
}

#if TG_ISA_LEVEL == TG_ISA_avx2
/* Loaded anew each time: of 16 registers none is left to keep it. */
VEC vf vf_fma_all(const float *x, vf b, vf c)
{
    __m256 all;
    __asm__ volatile("vbroadcastss %1, %0" : "=x"(all) : "m"(*x));
    return VF2(_mm256_fmadd_ps(all, b.l, c.l), _mm256_fmadd_ps(all, b.h, c.h));
}
#elif TG_ISA_LEVEL != TG_ISA_avx512
VEC vf vf_fma_all(const float *x, vf b, vf c)
{
    return vf_fma(vf_set1(*x), b, c);
}
#endif

#if TG_ISA_LEVEL != TG_ISA_avx512

VEC void vf_store_bf16(uint16_t *p, vf a)
{
    vi_store_s16((int16_t *)p, vi_to_bf16(a));
}

VEC vf vf_dot_bf16(vf acc, vi x, int32_t b2)
{
    vi b = vi_set1(b2);
    return vf_fma(vf_bf16_second(x), vf_bf16_second(b), vf_fma(vf_bf16_first(x), vf_bf16_first(b), acc));
}
#endif

/* The sum of 16 signed bytes. */
VEC int32_t vi_sum_s8(const int8_t *p)
{
#if TG_ISA_LEVEL != TG_ISA_scalar
    __m128i biased = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8(-128));
    __m128i sums = _mm_sad_epu8(biased, _mm_setzero_si128());
    return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
#else
    int32_t sum = 0;
    for (int i = 0; i < 16; i++)
        sum += p[i];
    return sum;
#endif
}

/* `vp`: 16 floats in two halves. Zen 4 turns 8 float16 into floats in three quarters of the time that it takes for 16 in
 * half as many instructions, which counts where little else is done with them. */
#if TG_ISA_LEVEL == TG_ISA_avx512
typedef struct vp {
    __m256 l, h;
} vp;

VEC vp vp_zero(void)
{
    return (vp){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

VEC vp vp_load(const float *p)
{
    return (vp){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

VEC void vp_store(float *p, vp a)
{
    _mm256_storeu_ps(p, a.l);
    _mm256_storeu_ps(p + 8, a.h);
}

VEC vp vp_load_f16(const void *p)
{
    const __m128i *q = (const __m128i *)p;
    return (vp){_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
}

/* *x times b + c */
VEC vp vp_fma_all(const float *x, vp b, vp c)
{
    __m256 all = _mm256_set1_ps(*x);
    return (vp){_mm256_fmadd_ps(all, b.l, c.l), _mm256_fmadd_ps(all, b.h, c.h)};
}
#else
typedef vf vp;
#define vp_zero vf_zero
#define vp_load vf_load
#define vp_store vf_store
#define vp_load_f16 vf_load_f16
#define vp_fma_all vf_fma_all
#endif

#if TG_ISA_LEVEL != TG_ISA_avx512
VEC vf vf_scale_above(vf a, vf n, vf x, float low)
{
    vi two_n = vi_shl23(vi_add(vi_from_float(n), vi_set1(127)));
    return vf_if_less(x, vf_set1(low), vf_zero(), vf_mul(a, vf_from_bits(two_n)));
}
#endif

/* The exponentials: x = n ln 2 + r ln 2 with n whole and |r| <= 1/2, found with the sum x log2 e + 1.5 * 2^23,
 * which rounds to an integer; 2^r is a polynomial fitted by minimax, and 2^n goes into the exponent. */
VEC vf vf_whole_log2(vf x)
{
    vf magic = vf_set1(12582912.0f);
    return vf_sub(vf_fma(x, vf_set1(1.442695041f), magic), magic);
}

/* e^x, within 1.2 units in the last place; 0 below -87, e^88 above 88; NaN for NaN. */
VEC vf vf_exp(vf x)
{
    vf t = vf_min(vf_set1(88.0f), vf_max(vf_set1(-87.0f), x)), n = vf_whole_log2(t);
    vf r = vf_fms(t, vf_set1(1.442695041f), n);
    r = vf_fma(t, vf_set1(1.925963033e-08f), r); /* the rest of log2 e */
    vf p = vf_set1(1.535324700e-04f);
    p = vf_fma(p, r, vf_set1(1.339900307e-03f));
    p = vf_fma(p, r, vf_set1(9.618438780e-03f));
    p = vf_fma(p, r, vf_set1(5.550331995e-02f));
    p = vf_fma(p, r, vf_set1(2.402264774e-01f));
    p = vf_fma(p, r, vf_set1(6.931471825e-01f));
    return vf_scale_above(vf_fma(p, r, vf_set1(1.0f)), n, x, -87.0f);
}

/* e^x as a weight of softmax: x <= 0 or NaN, relative error below 2^-23 (2.3 + |x| / 4), so that the
 * largest weights are as good as any and the smallest are off by what cannot be seen beside those. */
VEC vf vf_weight(vf x)
{
    vf n = vf_whole_log2(x), r = vf_fms(x, vf_set1(1.442695041f), n);
    vf p = vf_set1(1.326459227e-03f);
    p = vf_fma(p, r, vf_set1(9.671619162e-03f));
    p = vf_fma(p, r, vf_set1(5.550735071e-02f));
    p = vf_fma(p, r, vf_set1(2.402224094e-01f));
    p = vf_fma(p, r, vf_set1(6.931470037e-01f));
    return vf_scale_above(vf_fma(p, r, vf_set1(1.0f)), n, x, -87.0f);
}

/* cap * tanh(x / cap): an odd polynomial where the exponential's form would cancel. */
VEC vf vf_soft_cap(vf x, float cap)
{
    vf u = vf_div(x, vf_set1(cap)), s = vf_mul(u, u), one = vf_set1(1.0f);
    vf p = vf_set1(-5.439455621e-03f);
    p = vf_fma(p, s, vf_set1(2.039798163e-02f));
    p = vf_fma(p, s, vf_set1(-5.366505682e-02f));
    p = vf_fma(p, s, vf_set1(1.333054304e-01f));
    p = vf_fma(p, s, vf_set1(-3.333324790e-01f));
    vf small = vf_fma(vf_mul(u, s), p, u);
    vf a = vf_min(vf_set1(10.0f), vf_abs(u)), e = vf_exp(vf_add(a, a));
    vf large = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(e, one)));
    large = vf_if_less(u, vf_zero(), vf_sub(vf_zero(), large), large);
    return vf_mul(vf_if_less(vf_abs(u), vf_set1(0.625f), small, large), vf_set1(cap));
}

VEC float exp1(float x)
{
    return vf_first(vf_exp(vf_set1(x)));
}

VEC float weight1(float x)
{
    return vf_first(vf_weight(vf_set1(x)));
}

#endif
