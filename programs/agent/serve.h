/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.h - what the client asked for is done, or refused with a sentence. */
#pragma once

#include "sandbox.h"

/* Handles the frames that are there, as long as there is room for answers.  -errno when the
 * stream is no stream of frames: then nothing on it can be believed any more. */
int serve_frames(struct sandbox *sandbox);

/* Moves what can be moved on every channel. */
void serve_channels(struct sandbox *sandbox);
