/* part.c - part files: adopted or created, locked, written, and removed or left. */
#include "fetch/part.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/open.h"
#include "fetch/folder.h"

#define SUFFIX ".part"
#define RECORD_SUFFIX ".json"
enum { RECORD_MAX = 64 << 10 };

/* ---- records ----------------------------------------------------------------------------- */

static bool take_text(json_t *object, const char *key, char *to, size_t room)
{
    const char *s = json_string_value(json_object_get(object, key));
    if (!s || strlen(s) >= room)
        return false;
    memcpy(to, s, strlen(s) + 1);
    return true;
}

static bool take_size(json_t *object, const char *key, uint64_t *to)
{
    json_t *value = json_object_get(object, key);
    *to = json_is_integer(value) ? (uint64_t)json_integer_value(value) : TG_SIZE_UNKNOWN;
    return json_is_null(value) || (json_is_integer(value) && json_integer_value(value) >= 0);
}

bool tg_record_parse(const void *bytes, size_t n, tg_record *record)
{
    *record = (tg_record){0};
    json_t *object = tg_json_parse(bytes, n, "", NULL);
    const char *url = json_string_value(json_object_get(object, "url"));
    bool ok = url && take_text(object, "etag", record->etag, sizeof record->etag) &&
              take_text(object, "body_etag", record->body_etag, sizeof record->body_etag) &&
              take_text(object, "digest", record->digest, sizeof record->digest) &&
              take_size(object, "size", &record->size) && take_size(object, "stored", &record->stored);
    if (ok)
        record->url = strdup(url);
    json_decref(object);
    return ok && record->url;
}

static void record_name(const char *part, char name[NAME_MAX + 1])
{
    snprintf(name, NAME_MAX + 1, "%.*s" RECORD_SUFFIX, NAME_MAX - (int)strlen(RECORD_SUFFIX), part);
}

static bool load_record(int folder, const char *part, tg_record *record, size_t *n_bytes)
{
    char name[NAME_MAX + 1], bytes[RECORD_MAX];
    record_name(part, name);
    const bool found = tg_folder_read(&(tg_folder){.fd = folder}, name, bytes, sizeof bytes);
    *n_bytes = strlen(bytes);
    *record = (tg_record){0};
    return found && tg_record_parse(bytes, *n_bytes, record);
}

/* All n bytes, of which *at tells how far they are. */
static bool write_at(int fd, const char *bytes, size_t n, uint64_t *at)
{
    while (n > 0) {
        const ssize_t did = pwrite(fd, bytes, n, (off_t)*at);
        if (did < 0 && errno != EINTR)
            return false;
        if (did > 0) {
            bytes += did;
            n -= (size_t)did;
            *at += (uint64_t)did;
        }
    }
    return true;
}

static json_t *size_or_null(uint64_t size)
{
    return size == TG_SIZE_UNKNOWN ? json_null() : json_integer((json_int_t)size);
}

/* In one call of pwrite, if the system takes it whole, and never shorter than before: whoever is killed leaves the old
 * record or the new one. */
tg_status tg_part_note(tg_part *part, tg_error *err)
{
    const tg_record *r = &part->record;
    char name[NAME_MAX + 1];
    record_name(part->file.temporary, name);
    json_t *object = json_pack("{ss ss ss ss so sI}", "url", r->url, "etag", r->etag, "body_etag", r->body_etag,
                               "digest", r->digest, "size", size_or_null(r->size), "stored",
                               (json_int_t)part->stored);
    char *text = tg_json_text(object, JSON_INDENT(1), "the record of a download", err);
    json_decref(object);
    size_t n = text ? strlen(text) : 0, room = n + 1 > part->record_bytes ? n + 1 : part->record_bytes;
    char *padded = text && room < RECORD_MAX ? tg_alloc(room, 1, "the record of a download", err) : NULL;
    tg_status status = padded ? TG_OK : TG_E_RESOURCE;
    if (text && room >= RECORD_MAX)
        status = tg_fail(err, TG_E_USAGE, part->file.path, "its URL is too long");
    if (padded) {
        memset(padded, ' ', room - 1);
        memcpy(padded, text, n);
        padded[room - 1] = '\n';
        int flags = part->record_bytes ? 0 : O_CREAT | O_EXCL;
        uint64_t at = 0;
        int fd = tg_open(part->file.folder, name, O_WRONLY | O_NOFOLLOW | flags, 0600);
        if (fd < 0 || !write_at(fd, padded, room, &at))
            status = tg_fail_errno(err, part->file.path, "the record of its part cannot be written");
        else
            part->record_bytes = room;
        if (fd >= 0)
            close(fd);
    }
    tg_free(padded);
    tg_free(text);
    return status;
}

/* ---- adopting ---------------------------------------------------------------------------- */

/* Does it end as `.<8 hex digits><suffix>`? */
static bool has_ending(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix) + 9;
    return n > k && name[n - k] == '.' && strspn(name + n - k + 1, "0123456789abcdef") == 8 &&
           strcmp(name + n - k + 9, suffix) == 0;
}

/* Is it `.<target>.<8 hex digits>.part`? */
static bool is_part_of(const char *name, const char *target)
{
    char front[NAME_MAX + 1];
    size_t n = (size_t)snprintf(front, sizeof front, ".%.200s.", target);
    return strncmp(name, front, n) == 0 && strlen(name) == n + 8 + strlen(SUFFIX) && has_ending(name, SUFFIX);
}

static bool agree(const char *a, const char *b)
{
    return !*a || !*b || strcasecmp(a, b) == 0;
}

static bool fits(const tg_record *record, const tg_record *wanted, uint64_t stored)
{
    return strcmp(record->url, wanted->url) == 0 && agree(record->etag, wanted->etag) &&
           agree(record->digest, wanted->digest) &&
           (record->size == TG_SIZE_UNKNOWN || wanted->size == TG_SIZE_UNKNOWN || record->size == wanted->size) &&
           record->stored != TG_SIZE_UNKNOWN && stored >= record->stored && stored > 0 &&
           (record->size == TG_SIZE_UNKNOWN || stored <= record->size);
}

/* Opens and locks it, if it is a file of ours that still has this name. */
static int lock_part(int folder, const char *name, struct stat *st)
{
    struct stat now;
    int fd = tg_open(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
        st->st_nlink == 1 && fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st->st_ino &&
        now.st_dev == st->st_dev)
        return fd;
    close(fd);
    return -1;
}

static void remove_record(int folder, const char *part)
{
    char name[NAME_MAX + 1];
    record_name(part, name);
    unlinkat(folder, name, 0);
}

static void drop_record(tg_record *record)
{
    free(record->url);
    *record = (tg_record){0};
}

static void remove_part(int folder, const char *name)
{
    remove_record(folder, name);
    unlinkat(folder, name, 0);
}

/* Takes over the part of this name if it is the larger one, or removes it if it is of no use. */
static void consider(tg_part *part, int folder, const char *name, const tg_record *wanted)
{
    struct stat st;
    tg_record record;
    size_t record_bytes;
    int fd = lock_part(folder, name, &st);
    if (fd < 0)
        return;
    bool known = load_record(folder, name, &record, &record_bytes);
    char *copy = known && fits(&record, wanted, (uint64_t)st.st_size) && (uint64_t)st.st_size > part->stored
                     ? strdup(name)
                     : NULL;
    if (!copy) {
        remove_part(folder, name);
        drop_record(&record);
        close(fd);
        return;
    }
    if (part->file.temporary) { /* a smaller one of the same */
        remove_part(folder, part->file.temporary);
        close(part->file.fd);
        tg_free(part->file.temporary);
        drop_record(&part->record);
    }
    part->file.fd = fd;
    part->file.temporary = copy;
    part->stored = (uint64_t)st.st_size;
    part->record = record;
    part->record_bytes = record_bytes;
}

static DIR *open_folder(int folder)
{
    int fd = tg_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static void adopt(tg_part *part, int folder, const char *target, const tg_record *wanted)
{
    DIR *dir = open_folder(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_part_of(e->d_name, target))
            consider(part, folder, e->d_name, wanted);
    if (dir)
        closedir(dir);
}

void tg_part_clear(int folder, const char *target)
{
    DIR *dir = open_folder(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        int fd = is_part_of(e->d_name, target) ? lock_part(folder, e->d_name, &st) : -1;
        if (fd < 0)
            continue;
        remove_part(folder, e->d_name);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

void tg_part_sweep(int folder)
{
    DIR *dir = open_folder(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char part[NAME_MAX + 1];
        if (e->d_name[0] != '.' || !has_ending(e->d_name, SUFFIX RECORD_SUFFIX))
            continue;
        snprintf(part, sizeof part, "%.*s", (int)(strlen(e->d_name) - strlen(RECORD_SUFFIX)), e->d_name);
        if (faccessat(folder, part, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
            unlinkat(folder, e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

/* Between the creation and the lock another process may have taken it for an abandoned one. */
static tg_status create(tg_part *part, int folder, const char *target, tg_error *err)
{
    for (int attempt = 0; attempt < 8; attempt++) {
        struct stat st;
        tg_status status = tg_newfile_create_at(&part->file, folder, target, SUFFIX, 0600, err);
        if (status == TG_E_IO && faccessat(folder, ".", W_OK, AT_EACCESS) != 0)
            return tg_fail(err, TG_E_RESOURCE, target, "cannot be created: its folder is read-only");
        if (status != TG_OK)
            return status;
        if (flock(part->file.fd, LOCK_EX | LOCK_NB) == 0 && fstat(part->file.fd, &st) == 0 && st.st_nlink == 1)
            return TG_OK;
        tg_newfile_discard(&part->file);
    }
    return tg_fail(err, TG_E_IO, target, "its part cannot be locked");
}

tg_status tg_part_open(tg_part *part, int folder, const char *target, const tg_record *wanted, tg_error *err)
{
    struct stat st;
    *part = (tg_part){0};
    if (fstatat(folder, target, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
        return tg_fail(err, TG_E_IO, target, "is there already, and %s (allowed: nothing, or a regular file)",
                       S_ISLNK(st.st_mode) ? "a symbolic link" : "no regular file");
    part->file = (tg_newfile){.fd = -1, .folder = folder, .borrowed = true, .path = strdup(target)};
    if (!part->file.path)
        return tg_fail_alloc(err, strlen(target) + 1, "a file name");
    adopt(part, folder, target, wanted);
    if (part->file.temporary)
        return TG_OK;
    tg_newfile_keep(&part->file);
    tg_status status = create(part, folder, target, err);
    part->record = *wanted;
    part->record.url = strdup(wanted->url);
    if (status == TG_OK && !part->record.url)
        status = tg_fail_alloc(err, strlen(wanted->url) + 1, "a URL");
    if (status != TG_OK)
        tg_part_discard(part);
    return status;
}

/* ---- growing and ending ------------------------------------------------------------------ */

/* Writing back begins as the bytes come, so that the fsync at the end is short; and no more than LAG bytes wait
 * for the disk, so that a slow one holds up the network and not the memory of the machine. */
enum { WINDOW = 8 << 20, LAG = 64 << 20 };

static void write_back(const tg_part *part, uint64_t before)
{
    uint64_t from = before / WINDOW * WINDOW, to = part->stored / WINDOW * WINDOW;
    if (from == to)
        return;
    sync_file_range(part->file.fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE);
    if (from >= LAG)
        sync_file_range(part->file.fd, (off_t)(from - LAG), (off_t)(to - from),
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

tg_status tg_part_write(tg_part *part, const void *bytes, size_t n, tg_error *err)
{
    uint64_t before = part->stored;
    if (!write_at(part->file.fd, bytes, n, &part->stored))
        return tg_fail_errno(err, part->file.path, "cannot be written");
    write_back(part, before);
    return TG_OK;
}

tg_status tg_part_empty(tg_part *part, tg_error *err)
{
    part->stored = 0;
    return ftruncate(part->file.fd, 0) == 0 ? TG_OK
                                            : tg_fail_errno(err, part->file.path, "its part cannot be emptied");
}

tg_status tg_part_finish(tg_part *part, bool replace, tg_error *err)
{
    mode_t mask = umask(077); /* there is no other way to ask for it */
    umask(mask);
    fchmod(part->file.fd, 0666 & ~mask);
    char *name = strdup(part->file.temporary);
    tg_status status = name ? tg_newfile_finish(&part->file, replace, err) : tg_fail_alloc(err, 1, "a file name");
    if (name && !part->file.temporary)
        remove_record(part->file.folder, name);
    free(name);
    return status;
}

void tg_part_keep(tg_part *part)
{
    if (part->file.temporary && part->stored > 0)
        tg_part_note(part, NULL); /* where the disk is full, the older record serves */
    if (part->stored == 0 || part->record_bytes == 0) {
        tg_part_discard(part);
        return;
    }
    tg_newfile_keep(&part->file);
    drop_record(&part->record);
    *part = (tg_part){0};
}

void tg_part_discard(tg_part *part)
{
    if (part->file.temporary && part->record_bytes)
        remove_record(part->file.folder, part->file.temporary);
    tg_newfile_discard(&part->file);
    drop_record(&part->record);
    *part = (tg_part){0};
}
