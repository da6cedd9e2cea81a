/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "base/auto.h"
#include "receipt/statement.h"
#include "run.h"
#include "wire/syscalls.h"

#include <string.h>

#define TEXT_MAX 1024

static json_t *text(const char *value)
{
	return statement_text(value, strlen(value), TEXT_MAX);
}

/* An empty value is left out. */
static void set_text(json_t *object, const char *key, const char *value)
{
	if (value[0])
		json_object_set_new(object, key, text(value));
}

json_t *facts_runtime(const struct run *run)
{
	const struct runtime_plan *plan = run->job->plan;

	if (!plan)
		return json_null();
	json_t *object = json_object();
	set_text(object, "name", plan->name);
	set_text(object, "version", plan->version);
	set_text(object, "executable", plan->exe);
	set_text(object, "prefix", plan->prefix);
	set_text(object, "layer_sha256", plan->layer_digest);
	set_text(object, "note", plan->note);
	return object;
}

static json_t *layer_names(uint32_t bits)
{
	json_t *names = json_array();

	for (unsigned i = 0; i < LAYERS_; i++)
		if (bits & 1u << i)
			json_array_append_new(names, json_string(layer_name(i)));
	return names;
}

json_t *facts_isolation(const struct run *run)
{
	json_t *object = json_object();
	const struct sandbox_facts *facts = &run->facts;

	json_object_set_new(object, "requested", json_string(tier_name(run->job->tier)));
	if (run->job->require)
		json_object_set_new(object, "required", layer_names(run->job->require));
	if (!run->has_facts) {
		json_object_set_new(object, "actual", json_null());
		return object;
	}
	json_object_set_new(object, "actual", json_string(tier_name(facts->tier)));
	json_object_set_new(object, "layers",
			    json_pack("{s:o, s:o}", "held", layer_names(facts->layers_held),
				      "absent", layer_names(facts->layers_absent)));
	json_object_set_new(object, "landlock_abi", json_integer(facts->landlock_abi));
	json_object_set_new(object, "cgroup_version", json_integer(facts->cgroup_version));
	json_object_set_new(object, "uid_base", json_integer(facts->uid_base));
	json_object_set_new(object, "uid_count", json_integer(facts->uid_count));
	set_text(object, "kernel", facts->kernel);
	set_text(object, "seccomp_sha256", facts->seccomp_digest);
	set_text(object, "agent_sha256", facts->agent_digest);
	return object;
}

json_t *facts_limits(const struct run *run)
{
	const struct limits *l = &run->job->limits;
	const struct enforcement *by = &run->facts.by;
	const struct {
		const char *name;
		uint64_t value;
		uint32_t by;
	} rows[] = {
		{ "memory_bytes", l->memory_bytes, by->memory },
		{ "cpu_millis", l->cpu_millis, by->cpu },
		{ "pids", l->pids, by->pids },
		{ "disk_bytes", l->disk_bytes, by->disk },
		{ "disk_files", l->disk_files, by->disk_files },
		{ "tmp_bytes", l->tmp_bytes, by->tmp },
		{ "shm_bytes", l->shm_bytes, by->tmp },
		{ "open_files", l->open_files, by->open_files },
		{ "cpu_time_ms", l->cpu_time_ms, by->cpu_time },
		{ "io_bytes_per_s", l->io_bytes_per_s, by->io },
		{ "io_ops_per_s", l->io_ops_per_s, by->io },
		{ "wall_ms", l->wall_ms, BY_CLIENT },
		{ "output_bytes", l->output_bytes, BY_CLIENT },
	};
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* 0 is "no limit", which only the processor time can be. */
		if (rows[i].value == 0)
			continue;
		/* What another one's directory may hold is not ours to say. */
		bool foreign = run->job->workspace != WORKSPACE_OWN &&
			       strncmp(rows[i].name, "disk_", 5) == 0;
		const char *who = run->has_facts || rows[i].by == BY_CLIENT
					  ? enforcer_name(foreign ? BY_NOBODY : rows[i].by)
					  : NULL;
		json_object_set_new(object, rows[i].name,
				    json_pack("{s:I, s:s?}", "value", (json_int_t)rows[i].value,
					      "enforced_by", who));
	}
	return object;
}

json_t *facts_usage(const struct run *run)
{
	const struct usage *u = &run->ending.usage;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "wall_ms",
			 (json_int_t)run->ending.wall_ms, "cpu_ms", (json_int_t)(u->cpu_us / 1000),
			 "peak_memory_bytes", (json_int_t)u->peak_memory_bytes, "io_read_bytes",
			 (json_int_t)u->io_read_bytes, "io_write_bytes",
			 (json_int_t)u->io_write_bytes, "processes", (json_int_t)u->peak_pids,
			 "disk_bytes", (json_int_t)u->disk_bytes, "oom_kills",
			 (json_int_t)u->oom_kills);
}

static json_t *note(const struct outcome_note *n, bool with_name)
{
	json_t *object = json_object();

	if (with_name)
		json_object_set_new(object, "name", json_string(n->name));
	json_object_set_new(object, "number", json_integer((json_int_t)n->number));
	json_object_set_new(object, "limit",
			    n->limit ? json_integer((json_int_t)n->limit) : json_null());
	json_object_set_new(object, "retryable", json_boolean(n->retryable));
	set_text(object, "message", n->sentence);
	return object;
}

json_t *facts_cause(const struct run *run)
{
	return note(&run->outcome.note, false);
}

json_t *facts_flags(const struct run *run)
{
	json_t *list = json_array();

	for (size_t i = 0; i < run->outcome.n_flags; i++)
		json_array_append_new(list, note(&run->outcome.flags[i], true));
	return list;
}

json_t *facts_denied(const struct run *run)
{
	json_t *list = json_array();

	for (size_t i = 0; i < run->ending.n_denied; i++) {
		const struct denied_call *call = &run->ending.denied[i];
		const char *name = syscall_name(call->nr);
		json_array_append_new(
			list, json_pack("{s:s, s:I, s:I}", "name", name ? name : "other", "number",
					(json_int_t)call->nr, "times", (json_int_t)call->times));
	}
	return list;
}
