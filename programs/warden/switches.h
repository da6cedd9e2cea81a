/* SPDX-License-Identifier: Apache-2.0
 *
 * switches.h - test builds only (-Dlayer_switches=true): CAY_TEST_WITHOUT names a layer to leave
 * out.  In every other build this is 0, and the environment is not looked at. */
#pragma once

#include <stdint.h>

#ifdef CAY_LAYER_SWITCHES
uint32_t switches_without(void); /* bits of enum plan_without */
#else
static inline uint32_t switches_without(void)
{
	return 0;
}
#endif
