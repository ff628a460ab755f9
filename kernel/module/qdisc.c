// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * sch_asymq: the disciplines of asymq as a qdisc. Rust decides which packet leaves, waits or goes; C has
 * packets (packets.c), memory (host.c), locks and netlink (here).
 *
 * Every packet that waits is in q->waiting, in the order of arrival, whatever Rust knows of it. So a
 * change builds a new instance and offers it all that waits; and after a fault of Rust's the same list
 * is a FIFO at the shaped rate, until a change.
 *
 * Locks: RTNL for changes; the qdisc's own lock, inside the tree's, for all that packets touch, so that
 * the ingress hook needs no other wherever in the tree the qdisc is.
 */

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <net/rtnetlink.h>
#include "sched.h"

#define ASYMQ_MAX_WORDS 64
#define ASYMQ_MAX_WORD 192

static char *defaults[16];
static int defaults_count;
module_param_array(defaults, charp, &defaults_count, 0444);
MODULE_PARM_DESC(defaults, "what a qdisc is where nothing is said, \"name value\" each, separated by commas");

#ifdef ASYMQ_TEST
static int inject_set(const char *text, const struct kernel_param *param)
{
	if (sysfs_streq(text, "forgets"))
		asymq_misguidance = ASYMQ_FORGETS;
	else if (sysfs_streq(text, "foreign"))
		asymq_misguidance = ASYMQ_NAMES_FOREIGN;
	else if (sysfs_streq(text, "drops"))
		asymq_misguidance = ASYMQ_DROPS_ALL;
	else if (sysfs_streq(text, "filters"))
		asymq_misguidance = ASYMQ_FILTERS;
	else
		asymq_inject_panic();
	return 0;
}

static const struct kernel_param_ops inject_ops = { .set = inject_set };
module_param_cb(inject, &inject_ops, NULL, 0200);
MODULE_PARM_DESC(inject, "the next packet finds a fault: 1 a panic, forgets, foreign; or drops all, or filters an arrival");

static bool selftest = true;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "run the golden traces when loaded");
static char *spoil = "";
module_param(spoil, charp, 0444);
MODULE_PARM_DESC(spoil, "the discipline of whose recorded trace one byte is changed");
#endif

static noinline bool asymq_try_build(const struct asymq_setup *setup, struct asymq_built *built)
{
	return asymq_guarded(asymq_build(setup, built));
}

static noinline bool asymq_try_take_over(struct asymq_instance *instance, struct asymq_sched *q)
{
	return asymq_guarded(asymq_take_over(instance, q->before, q->instance));
}

static noinline bool asymq_try_move(struct asymq_sched *q, u64 now, struct asymq_values *values)
{
	return asymq_guarded(asymq_move(q->instance, now, values));
}

static noinline bool asymq_try_discard(struct asymq_values *values)
{
	return asymq_guarded(asymq_discard(values));
}

static noinline bool asymq_try_describe(struct asymq_sched *q, void *to)
{
	return asymq_guarded(asymq_describe(q->before, to));
}

static noinline bool asymq_try_show(struct asymq_sched *q, u64 now, void *to)
{
	return asymq_guarded(asymq_show(q->before, now, to));
}

/* Changes. */

/* The message of an error must live on until it is sent, after RTNL is free. */
static void asymq_say(struct netlink_ext_ack *extack, const char *text)
{
	static char messages[8][336];
	static unsigned int next;
	char *message = messages[next++ % ARRAY_SIZE(messages)];

	lockdep_assert_held(&asymq_building);
	snprintf(message, sizeof(messages[0]), "asymq: %s", text);
	if (extack)
		extack->_msg = message;
}

static void asymq_default_words(struct asymq_bytes *words, size_t *count)
{
	int i;

	for (i = 0; i < defaults_count; i++) {
		words[i].place = defaults[i];
		words[i].len = min_t(size_t, strlen(defaults[i]), ASYMQ_MAX_WORD);
	}
	*count = defaults_count;
}

static int asymq_words(struct nlattr *options, struct asymq_bytes *words, size_t *count)
{
	struct nlattr *attr;
	int rest;

	*count = 0;
	if (!options)
		return 0;
	nla_for_each_nested(attr, options, rest) {
		if (nla_type(attr) != TCA_ASYMQ_SET || *count == ASYMQ_MAX_WORDS)
			return -EINVAL;
		if (!nla_len(attr) || nla_len(attr) > ASYMQ_MAX_WORD)
			return -EINVAL;
		words[*count].place = nla_data(attr);
		words[*count].len = strnlen(nla_data(attr), nla_len(attr));
		(*count)++;
	}
	return rest ? -EINVAL : 0;
}

/* A new instance in a new arena. */
static int asymq_make(struct asymq_sched *q, struct nlattr *options, struct asymq_arena *arena,
		      struct asymq_built *built, struct netlink_ext_ack *extack)
{
	struct asymq_setup setup = {
		.now = ktime_get_ns(),
		.queue_len = qdisc_dev(q->sch)->tx_queue_len,
		.ifb = q->ifb,
		.whole = q->instance,
	};
	struct asymq_bytes *words;
	bool whole;
	int err;

	words = kcalloc(ASYMQ_MAX_WORDS, sizeof(*words), GFP_KERNEL);
	if (!words)
		return -ENOMEM;
	mutex_lock(&asymq_building);
	err = asymq_words(options, words, &setup.count);
	if (err) {
		asymq_say(extack, "attributes that no tc of its own sends");
		goto out;
	}
	if (!setup.count && !q->before)
		asymq_default_words(words, &setup.count);
	setup.words = words;
	/* After a fault what was given is still whole: it is only read. */
	setup.before = q->before;
	get_random_bytes(setup.secret, sizeof(setup.secret));
	asymq_arena_open(arena);
	whole = asymq_try_build(&setup, built);
	asymq_arena_close();
	if (!whole) {
		err = arena->exhausted ? -ENOMEM : -EFAULT;
		asymq_say(extack, err == -ENOMEM ? "not enough memory; use lower limits"
						 : "a fault; the kernel's log says where");
	} else if (!built->instance && !built->values) {
		err = built->out_of_memory ? -ENOMEM : -EINVAL;
		asymq_say(extack, built->error);
	}
out:
	mutex_unlock(&asymq_building);
	kfree(words);
	return err;
}

/* The instance goes on with new values. What it had before is freed, in the arena that both are in from now on. */
static int asymq_go_on(struct Qdisc *sch, struct asymq_built *built, struct asymq_arena *arena)
{
	struct asymq_sched *q = qdisc_priv(sch);
	int err = 0;
	u64 now;

	sch_tree_lock(sch);
	spin_lock(&q->lock);
	now = ktime_get_ns();
	/* A packet may have found a fault since: then the next change builds. */
	if (!q->instance)
		err = -EAGAIN;
	else if (!asymq_try_move(q, now, built->values))
		err = -EFAULT;
	if (!err) {
		q->rate = built->rate;
		q->limit = built->limit;
	} else if (q->instance) {
		asymq_fault(q);
	}
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + 1);
	sch_tree_unlock(sch);
	mutex_lock(&asymq_building);
	asymq_arena_join(&q->arena, arena);
	asymq_arena_open(&q->arena);
	asymq_try_discard(built->values);
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	return err;
}

static int asymq_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_arena arena, old_arena;
	struct asymq_built *built;
	struct sk_buff_head waiting;
	struct sk_buff *skb, *gone;
	unsigned int packets, bytes;
	u64 now;
	int err;

	asymq_arena_init(&arena);
	asymq_arena_init(&old_arena);
	built = kzalloc(sizeof(*built), GFP_KERNEL);
	if (!built)
		return -ENOMEM;
	err = asymq_make(q, options, &arena, built, extack);
	if (!err && built->values) {
		err = asymq_go_on(sch, built, &arena);
		goto out;
	}
	if (!err && built->observes) {
		err = asymq_hook(q);
		if (err)
			NL_SET_ERR_MSG_MOD(extack, "no ingress hook for the reverse path");
	}
	if (err)
		goto out;

	sch_tree_lock(sch);
	spin_lock(&q->lock);
	now = ktime_get_ns();
	/* Not even a fault in here takes the counters of C. */
	if (q->before)
		asymq_try_take_over(built->instance, q);
	asymq_arena_move(&old_arena, &q->arena);
	asymq_arena_move(&q->arena, &arena);
	q->instance = built->instance;
	q->before = built->instance;
	q->rate = built->rate;
	q->limit = built->limit;
	q->observes = built->observes;
	q->nat = built->nat;
	q->faults = 0;
	q->free_at = now;

	/* All that waits is offered to the new instance, in the order of arrival; not what a parent has peeked at. */
	packets = sch->q.qlen;
	bytes = sch->qstats.backlog;
	__skb_queue_head_init(&waiting);
	skb_queue_splice_init(&q->waiting, &waiting);
	while ((skb = __skb_dequeue(&waiting))) {
		sch->q.qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		asymq_offer(q, now, skb);
	}
	gone = q->gone;
	q->gone = NULL;
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (packets != sch->q.qlen)
		qdisc_tree_reduce_backlog(sch, packets - sch->q.qlen, bytes - sch->qstats.backlog);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + 1);
	sch_tree_unlock(sch);
	asymq_free_gone(gone);
	if (built->follows)
		asymq_follow(q);
	else
		asymq_unfollow(q);
out:
	if (!q->observes)
		asymq_unhook(q);
	kfree(built);
	asymq_arena_free(&arena);
	asymq_arena_free(&old_arena);
	return err;
}

/* Whether it is an IFB: what comes in to another device passes it. */
static bool asymq_is_ifb(const struct net_device *dev)
{
	return dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "ifb");
}

static int asymq_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct asymq_sched *q = qdisc_priv(sch);

	spin_lock_init(&q->lock);
	__skb_queue_head_init(&q->waiting);
	asymq_arena_init(&q->arena);
	qdisc_watchdog_init(&q->watchdog, sch);
	q->sch = sch;
	q->ifb = asymq_is_ifb(qdisc_dev(sch));
	return asymq_change(sch, options, extack);
}

/* Also after an init that failed. */
static void asymq_destroy(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);

	asymq_unhook(q);
	asymq_unfollow(q);
	qdisc_watchdog_cancel(&q->watchdog);
	asymq_arena_free(&q->arena);
	asymq_examine_end(q);
}

/* What is shown. */

void asymq_host_word(void *to, const char *name, size_t name_len, const char *value, size_t len)
{
	struct nlattr *attr = nla_reserve(to, TCA_ASYMQ_SET, name_len + 1 + len + 1);
	char *text;

	if (!attr)
		return;
	text = nla_data(attr);
	memcpy(text, name, name_len);
	text[name_len] = ' ';
	memcpy(text + name_len + 1, value, len);
	text[name_len + 1 + len] = 0;
}

void asymq_host_value(void *to, const char *name, size_t len, u8 kind, u64 value)
{
	struct asymq_value *place;
	struct nlattr *attr;

#ifdef ASYMQ_TEST
	if (!to) {
		if (!value)
			pr_err("asymq: golden %.*s: differs\n", (int)len, name);
		else
			pr_info("asymq: golden %.*s: ok\n", (int)len, name);
		return;
	}
#endif
	attr = nla_reserve(to, TCA_ASYMQ_VALUE, sizeof(*place) + len);
	if (!attr)
		return;
	place = nla_data(attr);
	place->value = value;
	place->kind = kind;
	memcpy(place->name, name, len);
}

static int asymq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	spin_lock_bh(&q->lock);
	if (!asymq_try_describe(q, skb) && q->instance)
		asymq_fault(q);
	spin_unlock_bh(&q->lock);
	return nla_nest_end(skb, nest);
}

static void asymq_show_number(struct sk_buff *to, const char *name, u64 value)
{
	asymq_host_value(to, name, strlen(name), ASYMQ_COUNT, value);
}

static void asymq_show_count(struct sk_buff *to, const char *name, struct asymq_count count)
{
	char text[40];

	scnprintf(text, sizeof(text), "queue.%s.packets", name);
	asymq_show_number(to, text, count.packets);
	scnprintf(text, sizeof(text), "queue.%s.bytes", name);
	asymq_show_number(to, text, count.bytes);
}

/* What tc's own counters lack for their sum. */
static void asymq_show_counts(struct asymq_sched *q, struct sk_buff *to)
{
	struct asymq_count peeked = {};
	struct sk_buff *skb;
	u64 packets, unknown;

	skb_queue_walk(&q->sch->gso_skb, skb) {
		peeked.packets++;
		peeked.bytes += qdisc_pkt_len(skb);
	}
	asymq_show_count(to, "arrived", q->arrived);
	asymq_show_count(to, "dropped", q->dropped);
	asymq_show_count(to, "filtered", q->filtered);
	asymq_show_count(to, "flushed", q->flushed);
	asymq_show_count(to, "peeked", peeked);
	asymq_show_count(to, "fallback_sent", q->fallback_sent);
	asymq_show_count(to, "fallback_dropped", q->fallback_dropped);
	asymq_show_count(to, "reverse", q->reverse);
	if (!q->device)
		return;
	asymq_ingress_counts(q, &packets, &unknown);
	asymq_show_number(to, "device.packets", packets);
	asymq_show_number(to, "device.unknown", unknown);
}

static int asymq_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(dump->skb, TCA_STATS_APP);

	if (!nest)
		return -1;
	spin_lock_bh(&q->lock);
	if (!asymq_try_show(q, ktime_get_ns(), dump->skb) && q->instance)
		asymq_fault(q);
	asymq_show_counts(q, dump->skb);
	if (q->faults)
		nla_put_u32(dump->skb, TCA_ASYMQ_FAILED, q->faults);
	spin_unlock_bh(&q->lock);
	nla_nest_end(dump->skb, nest);
	return 0;
}

static struct Qdisc_ops asymq_ops __read_mostly = {
	.id = "asymq",
	.priv_size = sizeof(struct asymq_sched),
	.enqueue = asymq_qdisc_enqueue,
	.dequeue = asymq_qdisc_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = asymq_init,
	.reset = asymq_qdisc_reset,
	.destroy = asymq_destroy,
	.change = asymq_change,
	.dump = asymq_dump,
	.dump_stats = asymq_dump_stats,
	.owner = THIS_MODULE,
};

#ifdef ASYMQ_TEST
static noinline bool asymq_try_selftest(void)
{
	return asymq_guarded(asymq_selftest(spoil, NULL));
}

static int asymq_run_selftest(void)
{
	struct asymq_arena arena;
	bool whole;

	if (!selftest)
		return 0;
	asymq_arena_init(&arena);
	mutex_lock(&asymq_building);
	asymq_arena_open(&arena);
	whole = asymq_try_selftest();
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	asymq_arena_free(&arena);
	return whole ? 0 : -EFAULT;
}
#else
static int asymq_run_selftest(void)
{
	return 0;
}
#endif

static int __init asymq_module_init(void)
{
	int err = asymq_run_selftest();

	return err ?: register_qdisc(&asymq_ops);
}

static void __exit asymq_module_exit(void)
{
	unregister_qdisc(&asymq_ops);
}

module_init(asymq_module_init);
module_exit(asymq_module_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("asymq: queue disciplines for asymmetric access links");
MODULE_INFO(rustc, ASYMQ_COMPILER);
#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("asymq");
#else
MODULE_ALIAS("sch_asymq");
#endif
