/* SPDX-License-Identifier: Apache-2.0
 *
 * auto.h - give a local variable back to the system when its scope ends.
 *
 *     auto_close int fd = open(...);
 *     auto_free char *name = strdup(...);
 *
 * Initialise every such variable on the line that declares it.  To hand the
 * value to someone else, take it: `*ret_fd = take_fd(&fd);` */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AUTO(fn) __attribute__((cleanup(fn)))
#define auto_free AUTO(auto_free_)
#define auto_close AUTO(auto_close_)
#define auto_closedir AUTO(auto_closedir_)
#define auto_fclose AUTO(auto_fclose_)

static inline void auto_free_(void *p)
{
	free(*(void **)p);
}

/* close() must not disturb the errno that the caller is about to report. */
static inline void auto_close_(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void auto_closedir_(DIR **dir)
{
	int saved = errno;

	if (*dir)
		closedir(*dir);
	errno = saved;
}

static inline void auto_fclose_(FILE **file)
{
	int saved = errno;

	if (*file)
		fclose(*file);
	errno = saved;
}

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *take_pointer_(void **p)
{
	void *taken = *p;

	*p = NULL;
	return taken;
}

/* Closes and forgets, so that a second call does nothing. */
static inline void drop_fd(int *fd)
{
	auto_close_(fd);
	*fd = -1;
}

#define take_ptr(p) ((__typeof__(*(p)))take_pointer_((void **)(p)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
