/* SPDX-License-Identifier: Apache-2.0
 *
 * The file, fields between tabs:
 *
 *     cay-runtimes  2  ENVIRONMENT  MANIFESTS
 *     dir  MTIME  PATH
 *     exe  LANG  FLAGS  DEV  INODE  SIZE  MTIME  CTIME  KEY  VERSION  EXE  PREFIX  SITE  WHY
 *     end
 *
 * FLAGS is "-" and any of u(sable), s(hared), h(idden).  A path with a tab or a newline in it is
 * left out and so asked again each time. */
#include "runtime/cache.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_NAME "runtimes.cache"
#define CACHE_FORMAT "2"
#define FIELDS_MAX 14

int findings_init(struct findings *ret_findings)
{
	*ret_findings = (struct findings){ .items = calloc(FOUND_MAX, sizeof(struct found)) };
	return ret_findings->items ? 0 : -ENOMEM;
}

void findings_finish(struct findings *findings)
{
	places_finish(&findings->places);
	free(findings->items);
	findings->items = NULL;
	findings->count = 0;
}

struct identity identity_of(const struct stat *st)
{
	return (struct identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
	};
}

bool identity_is_same(const struct identity *a, const struct identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

struct found *findings_get(const struct findings *findings, const char *lang, const char *key)
{
	for (size_t i = 0; i < findings->count; i++)
		if (strcmp(findings->items[i].key, key) == 0 &&
		    strcmp(findings->items[i].runtime.lang, lang) == 0)
			return &findings->items[i];
	return NULL;
}

/* Cuts a line at its tabs, in place. */
static size_t split(char *line, char *fields[static FIELDS_MAX])
{
	size_t n = 0;

	for (char *at = line; at && n < FIELDS_MAX;) {
		fields[n++] = at;
		at = strchr(at, '\t');
		if (at)
			*at++ = '\0';
		if (at && n == FIELDS_MAX)
			return 0;
	}
	return n;
}

static bool read_u64(const char *text, uint64_t *ret_number)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool read_i64(const char *text, int64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoll(text, &end, 10);
	return errno == 0 && *text && *end == '\0';
}

static bool copy(char *field, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		return false;
	memcpy(field, text, len + 1);
	return true;
}

#define COPY(field, text) copy(field, sizeof(field), text)

static bool read_exe(struct findings *findings, char *fields[static FIELDS_MAX])
{
	if (findings->count == FOUND_MAX)
		return false;
	struct found *found = &findings->items[findings->count];
	struct runtime *runtime = &found->runtime;
	struct identity *identity = &found->identity;

	if (!COPY(runtime->lang, fields[1]) || !read_u64(fields[3], &identity->dev) ||
	    !read_u64(fields[4], &identity->ino) || !read_u64(fields[5], &identity->size) ||
	    !read_i64(fields[6], &identity->mtime_ns) ||
	    !read_i64(fields[7], &identity->ctime_ns) || !COPY(found->key, fields[8]) ||
	    !COPY(runtime->version, fields[9]) || !COPY(runtime->exe, fields[10]) ||
	    !COPY(runtime->prefix, fields[11]) || !COPY(runtime->site, fields[12]) ||
	    !COPY(runtime->why, fields[13]))
		return false;
	runtime->usable = strchr(fields[2], 'u') != NULL;
	runtime->shared = strchr(fields[2], 's') != NULL;
	found->hidden = strchr(fields[2], 'h') != NULL;
	findings->count++;
	return true;
}

static bool read_line(struct findings *findings, char *line, bool first)
{
	char *fields[FIELDS_MAX];
	int64_t mtime_ns;
	size_t n = split(line, fields);

	if (first)
		return n == 4 && strcmp(fields[0], "cay-runtimes") == 0 &&
		       strcmp(fields[1], CACHE_FORMAT) == 0 &&
		       read_u64(fields[2], &findings->environment) &&
		       read_u64(fields[3], &findings->manifests);
	if (n == 3 && strcmp(fields[0], "dir") == 0)
		return fields[2][0] == '/' && read_i64(fields[1], &mtime_ns) &&
		       places_add(&findings->places, fields[2], mtime_ns);
	return n == FIELDS_MAX && strcmp(fields[0], "exe") == 0 && read_exe(findings, fields);
}

int cache_parse(char *text, size_t len, struct findings *findings)
{
	bool first = true;

	if (memchr(text, '\0', len))
		return -EINVAL;
	while (len > 0) {
		char *newline = memchr(text, '\n', len);
		if (!newline)
			return -EINVAL;
		*newline = '\0';
		size_t step = (size_t)(newline - text) + 1;
		if (!first && strcmp(text, "end") == 0)
			return len == step ? 0 : -EINVAL;
		if (!read_line(findings, text, first))
			return -EINVAL;
		first = false;
		text += step;
		len -= step;
	}
	return -EINVAL; /* cut short */
}

static int open_cache(const char *state_dir)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/" CACHE_NAME, state_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* It decides what is started as root. */
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return take_fd(&fd);
}

int cache_load(const char *state_dir, struct findings *findings)
{
	auto_close int fd = open_cache(state_dir);
	if (fd < 0)
		return fd;
	auto_free char *text = malloc(CACHE_SIZE_MAX);
	if (!text)
		return -ENOMEM;
	ssize_t len = fd_read_text(fd, text, CACHE_SIZE_MAX);
	if (len < 0)
		return (int)len;
	return cache_parse(text, (size_t)len, findings);
}

static bool is_plain(const char *text)
{
	return strpbrk(text, "\t\n") == NULL;
}

static void write_exe(FILE *file, const struct found *found)
{
	const struct runtime *r = &found->runtime;
	const struct identity *id = &found->identity;

	if (found->retry || !is_plain(found->key) || !is_plain(r->exe) || !is_plain(r->prefix) ||
	    !is_plain(r->site) || !is_plain(r->why))
		return;
	fprintf(file, "exe\t%s\t-%s%s%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64, r->lang,
		r->usable ? "u" : "", r->shared ? "s" : "", found->hidden ? "h" : "", id->dev,
		id->ino, id->size, id->mtime_ns);
	fprintf(file, "\t%" PRId64 "\t%s\t%s\t%s\t%s\t%s\t%s\n", id->ctime_ns, found->key,
		r->version, r->exe, r->prefix, r->site, r->why);
}

static void write_all(FILE *file, const struct findings *findings)
{
	const struct places *places = &findings->places;

	fprintf(file, "cay-runtimes\t" CACHE_FORMAT "\t%" PRIu64 "\t%" PRIu64 "\n",
		findings->environment, findings->manifests);
	for (size_t i = 0; i < places->count; i++)
		if (is_plain(places->items[i].path))
			fprintf(file, "dir\t%" PRId64 "\t%s\n", places->items[i].mtime_ns,
				places->items[i].path);
	for (size_t i = 0; i < findings->count; i++)
		write_exe(file, &findings->items[i]);
	fprintf(file, "end\n");
}

/* Written beside it and renamed: a reader sees the old one or the new one. */
int cache_save(const char *state_dir, const struct findings *findings)
{
	char path[PATH_MAX], temporary[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/" CACHE_NAME, state_dir) >= (int)sizeof(path) ||
	    snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	FILE *file = fdopen(fd, "w");
	if (!file) {
		close(fd);
		(void)unlink(temporary);
		return -ENOMEM;
	}
	write_all(file, findings);
	bool written = !ferror(file);
	written = fclose(file) == 0 && written;
	if (written && rename(temporary, path) == 0)
		return 0;
	int r = -errno;
	(void)unlink(temporary); /* ours, and of no use to anyone */
	return r < 0 ? r : -EIO;
}
