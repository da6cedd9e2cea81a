/* SPDX-License-Identifier: Apache-2.0
 *
 * sources.h - which trees of the host may be shown to a sandbox at a client's wish. */
#pragma once

struct err;
struct warden_create;

/* Refuses a workspace, image or input that is, holds, or lies in the state directory, where the key
 * of the receipts and the layers of every later run are; and a workspace that is one of the
 * system's own directories or a view of the kernel. */
int sources_check(const struct warden_create *create, const char *state_dir, struct err *err);
