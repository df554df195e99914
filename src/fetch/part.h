/* part.h - the bytes of a download until it is complete, and the record that lets a later run go on with them.
 *
 * A part is `.<target>.<random>.part` in the folder of the target, readable by its owner alone; its record has the
 * same name and ".json" behind it. Whoever writes a part holds a lock on it (flock), so that another process never
 * adopts or removes one in use; the lock saves bandwidth, and nothing else depends on it. */
#ifndef TG_FETCH_PART_H
#define TG_FETCH_PART_H

#include "base/newfile.h"
#include "fetch/net.h"

/* What the bytes are of. Anything but the URL may be unknown: "" or TG_SIZE_UNKNOWN. */
typedef struct tg_record {
    char *url;           /* without user part, query and fragment */
    char etag[128];      /* of the file, as the first server has it */
    char body_etag[128]; /* strong, of the answer that brought the bytes: what If-Range takes */
    char digest[65];     /* what the file's must be */
    uint64_t size;       /* what the file's must be */
    uint64_t stored;     /* how many bytes there were at least when the record was written */
} tg_record;

typedef struct tg_part {
    tg_newfile file; /* zeroed: no part */
    uint64_t stored;
    tg_record record;
    size_t record_bytes; /* of the record's file; 0: there is none */
} tg_part;

/* Adopts the largest part that has the wanted URL and whatever else of it is known on both sides, or else creates
 * an empty one. Parts of this target that are of something else are removed unless somebody writes them. TG_E_IO when
 * the target is there and no regular file. */
tg_status tg_part_open(tg_part *part, int folder, const char *target, const tg_record *wanted, tg_error *err);

/* Removes parts of a target that is there already, unless somebody writes them. */
void tg_part_clear(int folder, const char *target);

/* Removes records whose part is gone: a run that had just completed it was killed. */
void tg_part_sweep(int folder);

/* Appends. */
tg_status tg_part_write(tg_part *part, const void *bytes, size_t n, tg_error *err);

/* Back to no bytes: those that are there are of no use. */
tg_status tg_part_empty(tg_part *part, tg_error *err);

/* Writes part->record, with part->stored. */
tg_status tg_part_note(tg_part *part, tg_error *err);

/* The part becomes the target, see tg_newfile_finish. */
tg_status tg_part_finish(tg_part *part, bool replace, tg_error *err);

/* Closes it. What has bytes and a record stays for the next run. */
void tg_part_keep(tg_part *part);
void tg_part_discard(tg_part *part);

/* Reads a record; false for whatever was not written by tg_part_note. record->url is on the heap then. */
bool tg_record_parse(const void *bytes, size_t n, tg_record *record);

#endif
