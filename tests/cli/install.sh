#!/bin/sh
# What `make install` puts in place works from there, and goes again.
. "$(dirname "$0")/../support/cli.sh"
need_model
MAKE=${MAKE:-make}
echo "$MAKE install" >"$T/what"
"$MAKE" --no-print-directory install DESTDIR="$T/root" PREFIX=/usr >"$T/out" 2>"$T/err" || fail "installing"
usr=$T/root/usr
(cd "$T" && env -u TINYGPT_MODEL "$usr/bin/tinygpt" generate -n 3 --no-stdin -q "Once" >story) || fail "the model should be found"
ok "a story" [ -s "$T/story" ]
for file in lib/libtinygpt.a lib/pkgconfig/tinygpt.pc share/man/man1/tinygpt.1 share/zsh/site-functions/_tinygpt \
    share/bash-completion/completions/tinygpt share/fish/vendor_completions.d/tinygpt.fish; do
    ok "$file" [ -s "$usr/$file" ]
done

# A program of somebody else. The sanitizers' build would need their flags.
if command -v pkg-config >/dev/null 2>&1 && ! nm "$usr/lib/libtinygpt.a" 2>/dev/null | grep -q __asan; then
    cat >"$T/client.c" <<'END'
#include <stdio.h>
#include <tinygpt/tinygpt.h>
int main(int argc, char **argv)
{
    tg_error err;
    tg_model *model;
    if (argc != 2 || tg_model_load(&model, argv[1], 0, &err))
        return 1;
    tg_model_info info;
    tg_model_get_info(model, &info);
    printf("%s %d\n", info.architecture, info.n_vocab);
    tg_model_free(model);
    return 0;
}
END
    flags=$(PKG_CONFIG_LIBDIR="$usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$T/root" pkg-config --cflags --libs tinygpt)
    # shellcheck disable=SC2086
    ${CC:-cc} -o "$T/client" "$T/client.c" $flags -L/usr/lib >"$T/out" 2>"$T/err" || fail "linking with $flags"
    "$T/client" "$usr/share/tinygpt/tales.gguf" >"$T/out" 2>"$T/err" || fail "the client"
    out_has ' 4096'
fi

"$MAKE" --no-print-directory uninstall DESTDIR="$T/root" PREFIX=/usr >"$T/out" 2>"$T/err" || fail "uninstalling"
ok "no file is left" [ -z "$(find "$T/root" -type f)" ]
finish
