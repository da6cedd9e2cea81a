/* SPDX-License-Identifier: Apache-2.0
 *
 * agent_bytes.h - the agent's executable, carried in the warden; made by the build. */
#pragma once

extern const unsigned char agent_bytes[], agent_bytes_end[];

/* sha256 of it, hex. */
extern const char agent_digest[65];
