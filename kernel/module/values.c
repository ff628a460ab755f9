// SPDX-License-Identifier: MIT OR GPL-2.0
/* Options of a qdisc: the attributes of TCA_OPTIONS. All functions are called under RTNL. */

#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include "sched.h"

static unsigned long long defaults[2 * ASYMQ_ATTRIBUTES];
static int defaults_count;
module_param_array(defaults, ullong, &defaults_count, 0444);
MODULE_PARM_DESC(defaults, "default options: the numbers that `tc qdisc add ... asymq WORDS numbers` prints");

/* Not const, because kernels before 6.6 take a pointer to non-const. */
#define ASYMQ_RANGE(width, id, least, most) \
	static struct netlink_range_validation id##_range = { .min = least, .max = most };
ASYMQ_UNSIGNED(ASYMQ_RANGE)
#define ASYMQ_POLICY(width, id, least, most) [id] = NLA_POLICY_FULL_RANGE(NLA_##width, &id##_range),
#define ASYMQ_SIGNED_POLICY(width, id, least, most) [id] = NLA_POLICY_RANGE(NLA_##width, least, most),

static const struct nla_policy asymq_given_policy[ASYMQ_ATTRIBUTES] = {
	ASYMQ_UNSIGNED(ASYMQ_POLICY)
	ASYMQ_SIGNED(ASYMQ_SIGNED_POLICY)
};

static const struct nla_policy asymq_policy[ASYMQ_ATTRIBUTES] = {
	[TCA_ASYMQ_WORDS] = {
		.type = NLA_REJECT,
		.reject_message = "asymq: tc's plugin is older than the module; install both from one release",
	},
	[TCA_ASYMQ_GIVEN] = NLA_POLICY_NESTED(asymq_given_policy),
	ASYMQ_UNSIGNED(ASYMQ_POLICY)
	ASYMQ_SIGNED(ASYMQ_SIGNED_POLICY)
};

static void asymq_set(struct asymq_numbers *numbers, unsigned int id, u64 value)
{
	numbers->values[id] = value;
	numbers->has[id] = 1;
}

/* Reads validated attributes. Skips nested ones. */
static void asymq_read(const struct nlattr *attr, int len, struct asymq_numbers *numbers)
{
	int rest;

	nla_for_each_attr(attr, attr, len, rest) {
		switch (asymq_given_policy[nla_type(attr)].type) {
		case NLA_U8:
			asymq_set(numbers, nla_type(attr), nla_get_u8(attr));
			break;
		case NLA_U32:
		case NLA_S32:
			asymq_set(numbers, nla_type(attr), nla_get_u32(attr));
			break;
		case NLA_U64:
			asymq_set(numbers, nla_type(attr), nla_get_u64(attr));
			break;
		}
	}
}

static void asymq_read_nested(const struct nlattr *nest, struct asymq_numbers *numbers)
{
	asymq_read(nla_data(nest), nla_len(nest), numbers);
}

static void *asymq_put(void *to, unsigned int type, const void *value, unsigned int len)
{
	struct nlattr *attr = to;

	attr->nla_type = type;
	attr->nla_len = nla_attr_size(len);
	memcpy(nla_data(attr), value, len);
	memset(nla_data(attr) + len, 0, nla_padlen(len));
	return to + nla_total_size(len);
}

/* Writes each number with the width of its attribute. Returns the end of the written bytes. */
static void *asymq_put_numbers(void *to, const struct asymq_numbers *numbers)
{
	unsigned int id;
	u32 half;
	u8 byte;

	for (id = 0; id < ASYMQ_ATTRIBUTES; id++) {
		if (!numbers->has[id] || id == TCA_ASYMQ_VERSION)
			continue;
		switch (asymq_given_policy[id].type) {
		case NLA_U8:
			byte = numbers->values[id];
			to = asymq_put(to, id, &byte, sizeof(byte));
			break;
		case NLA_U32:
		case NLA_S32:
			half = numbers->values[id];
			to = asymq_put(to, id, &half, sizeof(half));
			break;
		case NLA_U64:
			to = asymq_put(to, id, &numbers->values[id], sizeof(u64));
			break;
		}
	}
	return to;
}

/* Upper bound: every attribute occurs twice. */
#define ASYMQ_OPTS_BYTES (2 * ASYMQ_ATTRIBUTES * (NLA_HDRLEN + sizeof(u64)))

/* Options being parsed, and attributes being written. RTNL makes a single set sufficient. */
static struct asymq_request asymq_request;
static u8 asymq_attributes[ASYMQ_OPTS_BYTES] __aligned(NLA_ALIGNTO);

struct asymq_opts *asymq_opts_new(const struct asymq_request *request)
{
	u32 version = ASYMQ_VERSION;
	struct asymq_opts *opts;
	struct nlattr *given;
	void *to;

	ASSERT_RTNL();
	to = asymq_put(asymq_attributes, TCA_ASYMQ_VERSION, &version, sizeof(version));
	to = asymq_put_numbers(to, &request->numbers);
	given = to;
	to = asymq_put_numbers(asymq_put(to, TCA_ASYMQ_GIVEN | NLA_F_NESTED, NULL, 0), &request->given);
	given->nla_len = to - (void *)given;
	opts = kmalloc(struct_size(opts, attributes, to - (void *)asymq_attributes), GFP_KERNEL_ACCOUNT);
	if (!opts)
		return NULL;
	asymq_lives(1);
	opts->len = to - (void *)asymq_attributes;
	memcpy(opts->attributes, asymq_attributes, opts->len);
	return opts;
}

void asymq_opts_free(struct asymq_opts *opts)
{
	if (!opts)
		return;
	asymq_lives(-1);
	kfree(opts);
}

static struct nlattr *asymq_first(struct asymq_opts *opts)
{
	return (struct nlattr *)opts->attributes;
}

void asymq_set_u64(struct nlattr *options, int id, u64 value)
{
	struct nlattr *attr = nla_find_nested(options, id);

	if (attr && nla_len(attr) == sizeof(value))
		memcpy(nla_data(attr), &value, sizeof(value));
}

/* True if a rate or buffer is within its policy's range. The fast path of a change does not run the policy. */
static bool asymq_is_in_range(const struct nlattr *attr)
{
	const struct netlink_range_validation *range = asymq_given_policy[nla_type(attr)].range;
	u64 value;

	memcpy(&value, nla_data(attr), sizeof(value));
	return value >= range->min && value <= range->max;
}

static bool asymq_is_of_line(unsigned int type)
{
	return type == TCA_ASYMQ_UP || type == TCA_ASYMQ_DOWN || type == TCA_ASYMQ_BUFFER;
}

/* Handles a message of only VERSION, rates and buffer: copies the effective options, and changes these values. */
static bool asymq_patch_line(const struct asymq_opts *opts, const struct nlattr *options)
{
	struct nlattr *all = (struct nlattr *)asymq_attributes, *given, *top, *inner, *up = NULL;
	const struct nlattr *attr;
	bool version = false;
	int rest;

	memcpy(asymq_attributes, opts->attributes, opts->len);
	given = nla_find(all, opts->len, TCA_ASYMQ_GIVEN);
	nla_for_each_nested(attr, options, rest) {
		if (attr->nla_type == TCA_ASYMQ_VERSION && nla_len(attr) == sizeof(u32)) {
			version = nla_get_u32(attr) == ASYMQ_VERSION;
			continue;
		}
		top = nla_find(all, opts->len, attr->nla_type);
		inner = given ? nla_find(nla_data(given), nla_len(given), attr->nla_type) : NULL;
		if (!asymq_is_of_line(attr->nla_type) || nla_len(attr) != sizeof(u64) || !top || !inner)
			return false;
		memcpy(nla_data(top), nla_data(attr), sizeof(u64));
		memcpy(nla_data(inner), nla_data(attr), sizeof(u64));
		if (attr->nla_type == TCA_ASYMQ_UP)
			up = top;
	}
	/* The default buffer depends on the rate. */
	top = nla_find(all, opts->len, TCA_ASYMQ_BUFFER);
	if (up && top && !nla_find(nla_data(given), nla_len(given), TCA_ASYMQ_BUFFER)) {
		u64 buffer = asymq_usual_buffer(nla_get_u64(up));

		memcpy(nla_data(top), &buffer, sizeof(buffer));
	}
	return version && !rest;
}

/* Compares attributes in 32-bit words, because the kernel's memcmp() would make a change 5 us slower. */
static bool asymq_differs(const void *a, const void *b, unsigned int len)
{
	const u32 *then = a, *now = b;

	for (; len; len -= sizeof(u32))
		if (*then++ != *now++)
			return true;
	return false;
}

/*
 * Most changes concern only rates. If a message has the same attributes in the same order, only its rates and its
 * buffer are checked.
 */
const void *asymq_read_line(const struct asymq_opts *opts, const struct nlattr *options, struct asymq_line *line)
{
	const u8 *then = opts->attributes, *now = nla_data(options), *value;
	unsigned int at, step, type;
	bool nested = false;

	ASSERT_RTNL();
	if (nla_len(options) != opts->len) {
		if (nla_len(options) > 4 * (int)nla_total_size(sizeof(u64)) || !asymq_patch_line(opts, options))
			return NULL;
		now = asymq_attributes;
	}
	for (at = 0; at < opts->len; at += step) {
		const struct nlattr *attr = (const struct nlattr *)(then + at);

		type = nla_type(attr);
		/* Skips only the header of a nest, so that the next step reads its first attribute. */
		step = type == TCA_ASYMQ_GIVEN ? NLA_HDRLEN : NLA_ALIGN(attr->nla_len);
		nested |= type == TCA_ASYMQ_GIVEN;
		if (asymq_differs(then + at, now + at, asymq_is_of_line(type) ? NLA_HDRLEN : step))
			return NULL;
		if (asymq_is_of_line(type) && !asymq_is_in_range((const struct nlattr *)(now + at)))
			return NULL;
		value = now + at + NLA_HDRLEN;
		if (nested)
			continue;
		if (type == TCA_ASYMQ_UP) {
			memcpy(&line->up, value, sizeof(u64));
		} else if (type == TCA_ASYMQ_DOWN) {
			memcpy(&line->down, value, sizeof(u64));
		} else if (type == TCA_ASYMQ_BUFFER) {
			memcpy(&line->buffer, value, sizeof(u64));
			line->buffer_moves = asymq_differs(then + at, now + at, step);
		}
	}
	return now;
}

/* If a rate is learnt, a change without a rate starts from the learnt rate. */
static void asymq_read_learnt(struct asymq_sched *q)
{
	u64 learnt;

	spin_lock_bh(&q->lock);
	asymq_must_hold(q);
	learnt = asymq_learnt(q->before);
	spin_unlock_bh(&q->lock);
	if (learnt)
		asymq_set(&asymq_request.before, TCA_ASYMQ_UP, learnt);
}

/* Reads the module's parameter; if the parameter is empty, uses the defaults of SAD. */
static void asymq_read_defaults(const struct asymq_sched *q)
{
	int i;

	for (i = 0; i + 1 < defaults_count; i += 2)
		if (defaults[i] < ASYMQ_ATTRIBUTES)
			asymq_set(&asymq_request.numbers, defaults[i], defaults[i + 1]);
	if (defaults_count)
		asymq_request.given = asymq_request.numbers;
	else
		asymq_usual(&asymq_request.numbers, qdisc_dev(q->sch)->tx_queue_len);
}

struct asymq_request *asymq_parse_request(struct asymq_sched *q, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct nlattr *version = NULL, *given = NULL;
	int err;

	ASSERT_RTNL();
	if (options) {
		err = nla_validate_nested(options, ASYMQ_ATTRIBUTES - 1, asymq_policy, extack);
		if (err)
			return ERR_PTR(err);
		version = nla_find_nested(options, TCA_ASYMQ_VERSION);
		given = nla_find_nested(options, TCA_ASYMQ_GIVEN);
		if (nla_len(options) && (!version || nla_get_u32(version) != ASYMQ_VERSION)) {
			NL_SET_ERR_MSG(extack, "asymq: tc's plugin and the module have different versions; install both from one release");
			return ERR_PTR(-EINVAL);
		}
	}
	memset(&asymq_request, 0, sizeof(asymq_request));
	if (q->opts) {
		asymq_read(asymq_first(q->opts), q->opts->len, &asymq_request.before);
		asymq_read_learnt(q);
	}
	if (q->opts && !(version && nla_find_nested(options, TCA_ASYMQ_QDISC))) {
		asymq_request.numbers = asymq_request.before;
		asymq_read_nested(nla_find(asymq_first(q->opts), q->opts->len, TCA_ASYMQ_GIVEN), &asymq_request.given);
		/* A rate that is given without a range is not learnt. */
		if (version && nla_find_nested(options, TCA_ASYMQ_UP) && !nla_find_nested(options, TCA_ASYMQ_UP_MIN)) {
			asymq_request.numbers.has[TCA_ASYMQ_UP_MIN] = asymq_request.numbers.has[TCA_ASYMQ_UP_MAX] = 0;
			asymq_request.given.has[TCA_ASYMQ_UP_MIN] = asymq_request.given.has[TCA_ASYMQ_UP_MAX] = 0;
		}
	} else if (!version) {
		asymq_read_defaults(q);
	}
	if (!version)
		return &asymq_request;
	asymq_read_nested(options, &asymq_request.numbers);
	if (given)
		memset(&asymq_request.given, 0, sizeof(asymq_request.given));
	asymq_read_nested(given ?: options, &asymq_request.given);
	asymq_request.derives = q->opts && !nla_find_nested(options, TCA_ASYMQ_QDISC);
	return &asymq_request;
}
