/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/manifest.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "base/settings.h"
#include "runtime/version.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#define SUFFIX ".manifest"
#define FIELD(name) SETTING_FIELD(struct manifest, name)

static const struct setting table[] = {
	{ "name", SETTING_TEXT, FIELD(name), 0, 0, "The language." },
	{ "title", SETTING_TEXT, FIELD(title), 0, 0, "Its name for people." },
	{ "runtime", SETTING_TEXT, FIELD(runtime), 0, 0,
	  "The language whose interpreter runs it." },
	{ "aliases", SETTING_TEXT, FIELD(aliases), 0, 0, "Other words for --lang." },
	{ "extensions", SETTING_TEXT, FIELD(extensions), 0, 0, "Ends of file names." },
	{ "shebangs", SETTING_TEXT, FIELD(shebangs), 0, 0, "Interpreters in a first line." },
	{ "probe", SETTING_TEXT, FIELD(probe), 0, 0, "How it is asked: python, node, version." },
	{ "commands", SETTING_TEXT, FIELD(commands), 0, 0, "Names of executables." },
	{ "search", SETTING_LINES, FIELD(search), 0, 0, "Where they may be." },
	{ "oldest", SETTING_TEXT, FIELD(oldest), 0, 0, "The oldest version that is supported." },
	{ "newest", SETTING_TEXT, FIELD(newest), 0, 0, "The newest." },
	{ "preferred", SETTING_TEXT, FIELD(preferred), 0, 0, "The one that is meant by default." },
	{ "version_parts", SETTING_NUMBER, FIELD(version_parts), 0, 4, "Numbers in its name." },
	{ "compile", SETTING_TEXT, FIELD(compile), 0, 0, "The command that comes first." },
	{ "run", SETTING_TEXT, FIELD(run), 0, 0, "The command; {exe} and {file} are put in." },
	{ "env", SETTING_LINES, FIELD(env), 0, 0, "NAME=value; {cpus} is put in." },
	{ "code_file", SETTING_TEXT, FIELD(code_file), 0, 0, "The file name of `-c` code." },
	{ "module_file", SETTING_TEXT, FIELD(module_file), 0, 0, "Likewise, for modules." },
	{ "code_default", SETTING_FLAG, FIELD(code_default), 0, 0, "Is `-c` code in it?" },
	{ "get", SETTING_TEXT, FIELD(get), 0, 0, "How to get one; {version} is put in." },
	{ 0 },
};

static bool next_piece(const char **at, const char *separators, char *ret_piece, size_t size)
{
	*at += strspn(*at, separators);
	size_t len = strcspn(*at, separators);
	if (len == 0)
		return false;
	size_t kept = len < size ? len : size - 1;
	memcpy(ret_piece, *at, kept);
	ret_piece[kept] = '\0';
	*at += len;
	return true;
}

bool words_next(const char **at, char *ret_word, size_t size)
{
	return next_piece(at, " \t\n", ret_word, size);
}

bool lines_next(const char **at, char *ret_line, size_t size)
{
	return next_piece(at, "\n", ret_line, size);
}

bool words_have(const char *words, const char *word)
{
	char one[64];

	while (words_next(&words, one, sizeof(one)))
		if (strcasecmp(one, word) == 0)
			return true;
	return false;
}

static int check(const struct manifest *m, const char *file, struct err *err)
{
	const char *const versions[] = { m->oldest, m->newest, m->preferred };

	if (!m->name[0] || !m->title[0] || !m->run[0] || !m->code_file[0])
		return err_make(err, ERR_INVALID, "'%s' lacks name, title, run or code_file", file);
	if (!m->runtime[0] && (!m->probe[0] || !m->commands[0] || !m->search[0]))
		return err_make(err, ERR_INVALID, "'%s' lacks probe, commands or search", file);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		if (versions[i][0] && !version_is_valid(versions[i]))
			return err_make(err, ERR_INVALID, "'%s': '%s' is not a version", file,
					versions[i]);
	if (!path_is_name(m->name) || strchr(m->name, '@') || !path_is_name(m->code_file) ||
	    (m->module_file[0] && !path_is_name(m->module_file)))
		return err_make(err, ERR_INVALID, "'%s' has a name with '/' or '@' in it", file);
	return 0;
}

/* Eight bytes at a time: this is paid at every start. */
static uint64_t fingerprint(const struct manifest *items, size_t count)
{
	const unsigned char *bytes = (const unsigned char *)items;
	uint64_t hash = 0xcbf29ce484222325u, word;

	_Static_assert(sizeof(*items) % sizeof(word) == 0, "whole words");
	for (size_t i = 0; i < count * sizeof(*items); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		hash = (hash ^ word) * 0x100000001b3u;
		hash ^= hash >> 32;
	}
	return hash;
}

static int read_one(struct manifests *manifests, int dirfd, const char *file, struct err *err)
{
	if (manifests->count == MANIFESTS_MAX)
		return err_make(err, ERR_LIMIT, "more than %d manifests", MANIFESTS_MAX);
	struct manifest *m = &manifests->items[manifests->count];
	*m = (struct manifest){ 0 };
	int r = settings_read_at(dirfd, file, table, m, err);
	if (r < 0)
		return r;
	r = check(m, file, err);
	if (r < 0)
		return r;
	if (manifests_find(manifests, m->name))
		return err_make(err, ERR_CONFLICT, "'%s': there is a second '%s'", file, m->name);
	manifests->count++;
	return 0;
}

static bool is_manifest(const char *name)
{
	size_t len = strlen(name), end = strlen(SUFFIX);

	return name[0] != '.' && len > end && strcmp(name + len - end, SUFFIX) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct manifest *)a)->name, ((const struct manifest *)b)->name);
}

static int read_all(struct manifests *manifests, const char *path, struct err *err)
{
	auto_closedir DIR *dir = opendir(path);
	if (!dir)
		return err_errno(err, errno, "open '%s'", path);
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry && errno)
			return err_errno(err, errno, "read '%s'", path);
		if (!entry)
			break;
		int r = is_manifest(entry->d_name)
				? read_one(manifests, dirfd(dir), entry->d_name, err)
				: 0;
		if (r < 0)
			return err_while(err, "manifests in '%s'", path);
	}
	if (manifests->count == 0)
		return err_make(err, ERR_NOT_FOUND, "no manifests in '%s'", path);
	return 0;
}

int manifests_read(const char *dir, struct manifests *ret_manifests, struct err *err)
{
	struct manifests manifests = { .items = calloc(MANIFESTS_MAX, sizeof(struct manifest)) };

	if (!manifests.items)
		return err_errno(err, ENOMEM, "read manifests");
	int r = read_all(&manifests, dir, err);
	if (r < 0) {
		manifests_finish(&manifests);
		return r;
	}
	qsort(manifests.items, manifests.count, sizeof(struct manifest), by_name);
	manifests.fingerprint = fingerprint(manifests.items, manifests.count);
	*ret_manifests = manifests;
	return 0;
}

void manifests_finish(struct manifests *manifests)
{
	free(manifests->items);
	*manifests = (struct manifests){ 0 };
}

const struct manifest *manifests_find(const struct manifests *manifests, const char *name)
{
	for (size_t i = 0; i < manifests->count; i++)
		if (strcasecmp(manifests->items[i].name, name) == 0)
			return &manifests->items[i];
	for (size_t i = 0; i < manifests->count; i++)
		if (words_have(manifests->items[i].aliases, name))
			return &manifests->items[i];
	return NULL;
}

const struct manifest *manifests_find_extension(const struct manifests *manifests, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *dot = strrchr(slash ? slash + 1 : file, '.');

	for (size_t i = 0; dot && i < manifests->count; i++)
		if (words_have(manifests->items[i].extensions, dot))
			return &manifests->items[i];
	return NULL;
}

const struct manifest *manifests_find_shebang(const struct manifests *manifests, const char *name)
{
	for (size_t i = 0; i < manifests->count; i++)
		if (words_have(manifests->items[i].shebangs, name))
			return &manifests->items[i];
	return NULL;
}

const struct manifest *manifests_code_default(const struct manifests *manifests)
{
	for (size_t i = 0; i < manifests->count; i++)
		if (manifests->items[i].code_default)
			return &manifests->items[i];
	return NULL;
}

const struct manifest *manifests_interpreter(const struct manifests *manifests,
					     const struct manifest *manifest)
{
	const struct manifest *found =
		manifest->runtime[0] ? manifests_find(manifests, manifest->runtime) : NULL;

	return found ? found : manifest;
}
