/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - deadlines run on the monotonic clock; only receipts and people see wall time. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t clock_mono_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static inline int64_t clock_mono_us(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000;
}
