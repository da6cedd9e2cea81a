/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include "mounts.h"
#include "plan.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A plan at hand, with the descriptors that came along. */
struct order {
	struct layers *layers;
	const struct plan *plan;
	const int *fds;
	size_t n_fds;
};

/* A descriptor of the plan, or -1. */
static int plan_fd(const struct order *order, uint32_t index)
{
	return index < order->n_fds ? order->fds[index] : -1;
}

/* A detached mount of a source: root sends it, a user's launcher takes it from /host. */
static int take_source(const struct order *order, uint32_t index, const char *path, unsigned attrs,
		       struct err *err)
{
	char host[1100];

	if (!order->layers->with_host) {
		int fd = plan_fd(order, index);
		if (fd < 0)
			return err_make(err, ERR_PROTOCOL, "'%s' came without its descriptor",
					path);
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return err_errno(err, errno, "keep the mount of '%s'", path);
		int r = mounts_restrict(copy, attrs, err);
		if (r < 0)
			close(copy);
		return r < 0 ? r : copy;
	}
	if ((size_t)snprintf(host, sizeof(host), "/host%s", path) >= sizeof(host))
		return err_make(err, ERR_INVALID, "the path '%.200s' is too long", path);
	int fd = mounts_clone(AT_FDCWD, host, attrs, err);
	return fd < 0 ? err_while(err, "show '%s'", path) : fd;
}

/* The number N of /l/N that shows the source. */
static int find_layer(const struct order *order, uint32_t index, const char *path, struct err *err)
{
	struct layers *layers = order->layers;
	char point[32];

	for (unsigned i = 0; i < layers->n_sources; i++)
		if (strcmp(layers->sources[i], path) == 0)
			return (int)i;
	if (layers->n_sources == LAYERS_MAX)
		return err_make(err, ERR_LIMIT, "more than %d layers are in use", LAYERS_MAX);
	auto_close int fd = take_source(
		order, index, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (fd < 0)
		return fd;
	snprintf(point, sizeof(point), "/l/%u", layers->n_sources);
	if (mkdir(point, 0755) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", point);
	int r = mounts_attach(fd, AT_FDCWD, point, err);
	if (r < 0)
		return r;
	layers->sources[layers->n_sources] = strdup(path);
	if (!layers->sources[layers->n_sources])
		return err_errno(err, ENOMEM, "remember a layer");
	return (int)layers->n_sources++;
}

/* Sandboxes with the same limits and the same mount points share a template. */
static int template_key(const struct plan *plan, char *ret_key, size_t size, struct err *err)
{
	const struct warden_create *create = &plan->create;
	size_t len = (size_t)snprintf(ret_key, size, "%u %llu", create->limits.cpu_millis,
				      (unsigned long long)create->limits.memory_bytes);

	for (uint32_t i = 0; i < create->n_binds && len < size; i++)
		if (create->binds[i].kind == BIND_TREE)
			len += (size_t)snprintf(ret_key + len, size - len, " %s",
						create->strings + create->binds[i].target);
	/* Two that differ only behind the cut would share one template. */
	return len < size ? 0 : err_make(err, ERR_LIMIT, "the places of the trees are too long");
}

static int find_template(const struct order *order, struct err *err)
{
	struct layers *layers = order->layers;
	char key[2048], path[32];

	int r = template_key(order->plan, key, sizeof(key), err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < layers->n_templates; i++)
		if (strcmp(layers->templates[i], key) == 0)
			return (int)i;
	if (layers->n_templates == TEMPLATES_MAX)
		return err_make(err, ERR_LIMIT, "more than %d shapes of sandboxes are in use",
				TEMPLATES_MAX);
	snprintf(path, sizeof(path), "/t/%u", layers->n_templates);
	if (mkdir(path, 0755) < 0)
		return err_errno(err, errno, "make '%s'", path);
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = template_build(dir, layers->proc_fd, order->plan, err);
	if (r < 0) {
		(void)path_remove_tree(AT_FDCWD, path + 1);
		return r;
	}
	layers->templates[layers->n_templates] = strdup(key);
	if (!layers->templates[layers->n_templates])
		return err_errno(err, ENOMEM, "remember a template");
	return (int)layers->n_templates++;
}

static int add_tree(const struct order *order, struct jail_root *root, uint32_t i, struct err *err)
{
	const struct warden_create *create = &order->plan->create;
	const struct warden_bind *bind = &create->binds[i];

	if (root->n_trees == JAIL_TREES_MAX)
		return err_make(err, ERR_LIMIT, "more than %d trees in a sandbox", JAIL_TREES_MAX);
	struct jail_tree *tree = &root->trees[root->n_trees];
	int n = find_layer(order, order->plan->bind_fd[i], create->strings + bind->source, err);
	if (n < 0)
		return n;
	snprintf(tree->lower, sizeof(tree->lower), "/l/%d", n);
	if (create->strings[bind->over]) {
		n = find_layer(order, order->plan->over_fd[i], create->strings + bind->over, err);
		if (n < 0)
			return n;
		snprintf(tree->over, sizeof(tree->over), "/l/%d", n);
	}
	tree->target = create->strings + bind->target;
	root->n_trees++;
	return 0;
}

/* The image itself, and over it the base. */
static int add_image(const struct order *order, struct jail_root *root, uint32_t i, struct err *err)
{
	const struct warden_create *create = &order->plan->create;
	const struct warden_bind *bind = &create->binds[i];
	int base = find_layer(order, order->plan->over_fd[i], create->strings + bind->over, err);
	int image = base < 0 ? base
			     : find_layer(order, order->plan->bind_fd[i],
					  create->strings + bind->source, err);

	if (image < 0)
		return image;
	snprintf(root->lower, sizeof(root->lower), "/l/%d:/l/%d", base, image);
	return 0;
}

static int add_bind(const struct order *order, struct jail_root *root, uint32_t i, struct err *err)
{
	const struct warden_create *create = &order->plan->create;
	const struct warden_bind *bind = &create->binds[i];
	const char *source = create->strings + bind->source;
	int n;

	switch (bind->kind) {
	case BIND_IMAGE:
		return add_image(order, root, i, err);
	case BIND_TREE:
		return add_tree(order, root, i, err);
	case BIND_INPUT:
		n = take_source(order, order->plan->bind_fd[i], source,
				MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					MOUNT_ATTR_NOATIME,
				err);
		if (n < 0)
			return n;
		root->inputs[root->n_inputs].fd = n;
		root->inputs[root->n_inputs++].name = create->strings + bind->target;
		return 0;
	default:
		return 0; /* workspaces are the plan's own fields */
	}
}

/* A user's scratch directory belongs to the sandbox's user; only here, in U, can it be given. */
static int prepare_scratch(const struct order *order, int workspace, struct err *err)
{
	uid_t id = ids_outer_id(order->layers->ids, order->plan->slot, order->plan->own_user);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", workspace);
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || (mkdirat(dir, "output", 0755) < 0 && errno != EEXIST) ||
	    fchownat(dir, "output", id, id, AT_SYMLINK_NOFOLLOW) < 0 || fchown(dir, id, id) < 0)
		return err_errno(err, errno, "prepare the workspace");
	return 0;
}

static int open_workspace(const struct order *order, struct jail_root *root, struct err *err)
{
	const struct plan *plan = order->plan;
	unsigned attrs =
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (plan->workspace_ro ? MOUNT_ATTR_RDONLY : 0);

	root->workspace_fd = -1;
	root->workspace_ro = plan->workspace_ro;
	root->scratch = plan->scratch;
	if (plan->workspace_fd == PLAN_FD_NONE && !plan->workspace_path[0])
		return 0;
	root->workspace_fd =
		take_source(order, plan->workspace_fd, plan->workspace_path, attrs, err);
	if (root->workspace_fd < 0)
		return root->workspace_fd;
	if (plan->scratch && order->layers->with_host)
		return prepare_scratch(order, root->workspace_fd, err);
	return 0;
}

int layers_plan_root(struct layers *layers, const struct plan *plan, const int *fds, size_t n_fds,
		     struct jail_root *ret_root, struct err *err)
{
	const struct order order = { .layers = layers, .plan = plan, .fds = fds, .n_fds = n_fds };
	int n = find_template(&order, err);
	int r = n < 0 ? n : 0;

	*ret_root = (struct jail_root){
		.masks = layers->masks,
		.n_masks = layers->n_masks,
		.dev_fd = -1,
		.workspace_fd = -1,
		.bare = plan->without & WITHOUT_MOUNTS,
		.limits = &plan->create.limits,
	};
	snprintf(ret_root->upper, sizeof(ret_root->upper), "/t/%d", n);
	for (uint32_t i = 0; r == 0 && i < plan->create.n_binds; i++)
		r = add_bind(&order, ret_root, i, err);
	if (r == 0 && plan->has_dev) {
		ret_root->dev_fd = plan_fd(&order, PLAN_FD_FIRST + plan->n_tasks);
		if (ret_root->dev_fd < 0)
			r = err_make(err, ERR_PROTOCOL, "/dev came without its descriptor");
	}
	return r < 0 ? r : open_workspace(&order, ret_root, err);
}

void layers_close_root(struct jail_root *root)
{
	for (unsigned i = 0; i < root->n_inputs; i++)
		drop_fd(&root->inputs[i].fd);
	drop_fd(&root->workspace_fd);
}
