// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * sch_asymq: the disciplines of asymq as a qdisc. The Rust half decides which packet to send, keep or drop. The C half
 * manages packets (packets.c), memory (host.c), locks and netlink (this file).
 *
 * Every queued packet is in q->waiting, in order of arrival. A change builds a new instance and offers it these packets. After
 * a fault of the Rust half (a wrong or missing packet), this list is a FIFO at the shaped rate until the next change.
 *
 * Locks, from outermost to innermost: RTNL for changes and dumps; the tree's lock for qlen, backlog and packets that a parent
 * holds (gso_skb); the qdisc's own lock for the instance and its counters. The ingress hook therefore needs only the
 * qdisc's lock, at any position of the qdisc in the tree. docs/notes/kernel.md lists the locks of every entry point.
 */

#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/u64_stats_sync.h>
#include <linux/version.h>
#include <net/netlink.h>
#include <net/rtnetlink.h>
#include "observer.h"

#ifdef ASYMQ_TEST
static int inject_set(const char *text, const struct kernel_param *param)
{
	if (sysfs_streq(text, "forgets"))
		asymq_misguidance = ASYMQ_FORGETS;
	else if (sysfs_streq(text, "foreign"))
		asymq_misguidance = ASYMQ_NAMES_FOREIGN;
	else if (sysfs_streq(text, "drops-foreign"))
		asymq_misguidance = ASYMQ_DROPS_FOREIGN;
	else if (sysfs_streq(text, "drops"))
		asymq_misguidance = ASYMQ_DROPS_ALL;
	else if (sysfs_streq(text, "drops-others"))
		asymq_misguidance = ASYMQ_DROPS_OTHERS;
	else if (sysfs_streq(text, "filters"))
		asymq_misguidance = ASYMQ_FILTERS;
	else
		return -EINVAL;
	return 0;
}

static const struct kernel_param_ops inject_ops = { .set = inject_set };
module_param_cb(inject, &inject_ops, NULL, 0200);
MODULE_PARM_DESC(inject, "error to inject once: forgets, foreign, drops-foreign, drops, drops-others or filters");

static bool selftest = true;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "run the golden traces when loaded");
static char *spoil = "";
module_param(spoil, charp, 0444);
MODULE_PARM_DESC(spoil, "discipline whose recorded trace gets one wrong byte");
static unsigned long held;
module_param(held, ulong, 0644);
MODULE_PARM_DESC(held, "nanoseconds for which the last new instance held the locks");
#define asymq_set_held(since) (held = ktime_get_ns() - (since))
#else
#define asymq_set_held(since) do { } while (0)
#endif

/* Changes. */

static int asymq_refusal(const struct asymq_built *built, struct netlink_ext_ack *extack)
{
	if (built->out_of_memory) {
		NL_SET_ERR_MSG(extack, "asymq: not enough memory; use lower limits");
		return -ENOMEM;
	}
	if (!built->error)
		return 0;
	if (extack)
		extack->_msg = built->error;
	return -EINVAL;
}

static int asymq_compute_defaults(struct asymq_request *request, struct asymq_built *built, struct netlink_ext_ack *extack)
{
	struct asymq_arena arena;

	if (!request->derives)
		return 0;
	memset(built, 0, sizeof(*built));
	asymq_arena_init(&arena);
	mutex_lock(&asymq_building);
	asymq_arena_open(&arena, 0);
	asymq_derive(&request->numbers, &request->given, built);
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	asymq_arena_free(&arena);
	return asymq_refusal(built, extack);
}

/* Builds an instance in an empty arena. With `reuse`, the present instance may instead continue at other rates. */
static int asymq_make(struct asymq_sched *q, const struct asymq_request *request, bool reuse, u32 key,
		      struct asymq_arena *arena, struct asymq_built *built, struct netlink_ext_ack *extack)
{
	struct asymq_setup setup = {
		.now = ktime_get_ns(),
		.ifb = q->ifb,
		.before = reuse ? &request->before : NULL,
		.numbers = &request->numbers,
		.given = &request->given,
	};

	memset(built, 0, sizeof(*built));
	get_random_bytes(setup.secret, sizeof(setup.secret));
	mutex_lock(&asymq_building);
	asymq_arena_open(arena, key);
	asymq_build(&setup, built);
	if (built->instance && !asymq_arena_is_tight(arena, key)) {
		asymq_arena_close();
		asymq_arena_free(arena);
		memset(built, 0, sizeof(*built));
		asymq_arena_open(arena, key);
		asymq_build(&setup, built);
	}
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	return asymq_refusal(built, extack);
}

static void asymq_set_rates(struct asymq_sched *q, const struct asymq_built *built)
{
	q->rate = built->shaped ? built->link : 0;
	q->limit = built->limit;
}

/*
 * Changes the instance's rates, if it can continue. The new rates are in `line` (with options `attributes`) or in `built`
 * (with options `opts`). A dump reads the options under the lock. Returns -EAGAIN after a fault, which requires a new
 * instance.
 */
static int asymq_update_rates(struct Qdisc *sch, const struct asymq_line *line, const void *attributes,
			      struct asymq_opts **opts, struct asymq_built *built)
{
	struct asymq_sched *q = qdisc_priv(sch);
	int err = 0;
	u64 now;

	sch_tree_lock(sch);
	spin_lock(&q->lock);
	now = ktime_get_ns();
	if (q->instance) {
		if (line)
			asymq_fits_rates(q->instance, line, built);
		if (built->reuse) {
			asymq_must_hold(q);
			asymq_move(q->instance, now, built->link, built->reverse);
			asymq_set_rates(q, built);
			if (line)
				memcpy(q->opts->attributes, attributes, q->opts->len);
			else
				swap(q->opts, *opts);
		}
	} else {
		err = -EAGAIN;
	}
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + 1);
	sch_tree_unlock(sch);
	return err;
}

/* Handles the most frequent change, which concerns only rates. Returns false for other changes. */
static bool asymq_change_rates(struct Qdisc *sch, const struct nlattr *options)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_built built = { .shaped = q->rate };
	struct asymq_line line = {};
	const void *attributes;

	if (!options || !q->opts)
		return false;
	attributes = asymq_read_line(q->opts, options, &line);
	return attributes && !asymq_update_rates(sch, &line, attributes, NULL, &built) && built.reuse;
}

/* Replaces the instance, and offers the queued packets to the new one. */
static void asymq_replace(struct Qdisc *sch, const struct asymq_built *built, struct asymq_opts **opts,
			  struct asymq_arena *arena)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_arena old_arena;
	struct sk_buff *gone;
	u64 now;

	asymq_arena_init(&old_arena);
	sch_tree_lock(sch);
	spin_lock(&q->lock);
	asymq_must_hold(q);
	now = ktime_get_ns();
	/* C's counters stay valid even if a fault occurs here. */
	if (q->before)
		asymq_take_over(built->instance, q->before, q->instance);
	asymq_arena_move(&old_arena, &q->arena);
	asymq_arena_move(&q->arena, arena);
	WRITE_ONCE(q->instance, built->instance);
	q->before = built->instance;
	swap(q->opts, *opts);
	asymq_set_rates(q, built);
	q->observes = built->observes;
	q->learns = built->learns;
	q->follows_rates = built->follows_rates;
	q->nat = built->nat;
	q->faults = 0;
	q->free_at = now;

	/* Offers packets in order of arrival, except those that a parent peeked at. The end of a long list follows later. */
	q->next_offer = skb_peek(&q->waiting);
	q->unoffered = skb_queue_len(&q->waiting);
	asymq_offer_again(q, now, ASYMQ_OFFERS_AT_CHANGE);
	gone = q->gone;
	q->gone = NULL;
	asymq_examine(q);
	spin_unlock(&q->lock);
	asymq_report_to_parents(q);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + 1);
	asymq_set_held(now);
	sch_tree_unlock(sch);
	asymq_free_gone(gone);
	asymq_arena_free(&old_arena);
}

static int asymq_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_built *built = NULL;
	struct asymq_opts *opts = NULL;
	struct asymq_request *request;
	struct asymq_arena arena;
	u32 key = 0;
	int err;

	/* tc's notification comes after the change. */
	if (asymq_change_rates(sch, options)) {
		q->changed = true;
		return 0;
	}
	asymq_arena_init(&arena);
	request = asymq_parse_request(q, options, extack);
	if (IS_ERR(request))
		return PTR_ERR(request);
	built = kmalloc(sizeof(*built), GFP_KERNEL);
	err = built ? asymq_compute_defaults(request, built, extack) : -ENOMEM;
	if (!err) {
		opts = asymq_opts_new(request);
		err = opts ? 0 : -ENOMEM;
	}
	if (!err) {
		key = jhash(opts->attributes, opts->len, q->ifb);
		err = asymq_make(q, request, READ_ONCE(q->instance) && q->follows_rates, key, &arena, built, extack);
	}
	if (!err && built->reuse) {
		err = asymq_update_rates(sch, NULL, NULL, &opts, built);
		if (err != -EAGAIN)
			goto out;
		err = asymq_make(q, request, false, key, &arena, built, extack);
	}
	if (!err && built->observes) {
		err = asymq_hook(q);
		if (err)
			NL_SET_ERR_MSG_MOD(extack, "no ingress hook for the reverse path");
	}
	if (err)
		goto out;

	asymq_replace(sch, built, &opts, &arena);
	asymq_allow_bypass(q, built->bypass);
	if (built->follows)
		asymq_follow(q);
	else
		asymq_unfollow(q);
out:
	if (!err)
		q->changed = !!options;
	if (!q->observes)
		asymq_unhook(q);
	kfree(built);
	asymq_opts_free(opts);
	asymq_arena_free(&arena);
	return err;
}

/* True for an IFB, whose packets arrived at another device. */
static bool asymq_is_ifb(const struct net_device *dev)
{
	return dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "ifb");
}

static int asymq_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct asymq_sched *q = qdisc_priv(sch);

	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->bypassed);
	__skb_queue_head_init(&q->waiting);
	asymq_arena_init(&q->arena);
	qdisc_watchdog_init(&q->watchdog, sch);
	q->sch = sch;
	q->net = asymq_net_of(qdisc_dev(sch));
	q->ifb = asymq_is_ifb(qdisc_dev(sch));
	return asymq_change(sch, options, extack);
}

/* Also called after a failed asymq_init(). */
static void asymq_destroy(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);

	asymq_unhook(q);
	asymq_unfollow(q);
	list_del_init(&q->bypassed);
	qdisc_watchdog_cancel(&q->watchdog);
	asymq_arena_free(&q->arena);
	asymq_opts_free(q->opts);
	asymq_examine_end(q);
}

/* Dumps. */

void asymq_host_number(void *to, u32 id, u64 value)
{
	nla_put_u64_64bit(to, id, value, ASYMQ_CLASS_PAD);
}

void *asymq_host_nest(void *to, u32 id)
{
	return nla_nest_start(to, id);
}

void asymq_host_nest_end(void *to, void *nest)
{
	if (nest)
		nla_nest_end(to, nest);
}

#ifdef ASYMQ_TEST
void asymq_host_test_result(const char *name, size_t len, bool same)
{
	if (same)
		pr_info("asymq: golden %.*s: ok\n", (int)len, name);
	else
		pr_err("asymq: golden %.*s: differs\n", (int)len, name);
}
#endif

static int asymq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct nlattr *options;
	u64 learnt;

	/* Reserves room without allocating. Only the message gets a learnt rate; the options keep the initial rate. */
	spin_lock_bh(&q->lock);
	options = nla_reserve(skb, TCA_OPTIONS, q->opts->len);
	if (options) {
		memcpy(nla_data(options), q->opts->attributes, q->opts->len);
		asymq_must_hold(q);
		learnt = asymq_learnt(q->before);
		if (learnt)
			asymq_set_u64(options, TCA_ASYMQ_UP, learnt);
	}
	spin_unlock_bh(&q->lock);
	return options ? 0 : -EMSGSIZE;
}

static void asymq_dump_count(struct sk_buff *to, u32 id, struct asymq_count count)
{
	asymq_host_number(to, id, count.packets);
	asymq_host_number(to, id + 1, count.bytes);
}

/* Packets that bypassed the idle qdisc. The kernel counts them as sent by the qdisc, and aggregates as segments. */
static struct asymq_count asymq_bypassed(const struct asymq_sched *q)
{
	struct asymq_count sent;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0)
	const struct gnet_stats_basic_sync *bstats = &q->sch->bstats;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&bstats->syncp);
		sent.packets = u64_stats_read(&bstats->packets);
		sent.bytes = u64_stats_read(&bstats->bytes);
	} while (u64_stats_fetch_retry(&bstats->syncp, start));
#else
	sent.packets = q->sch->bstats.packets;
	sent.bytes = q->sch->bstats.bytes;
#endif
	sent.packets -= q->dequeued.packets;
	sent.bytes -= q->dequeued.bytes;
	return sent;
}

static struct asymq_count asymq_sum(struct asymq_count one, struct asymq_count other)
{
	one.packets += other.packets;
	one.bytes += other.bytes;
	return one;
}

/* Dumps counters that tc lacks. Also needs the tree's lock, under which a parent that peeks changes gso_skb. */
static void asymq_dump_counts(struct asymq_sched *q, struct sk_buff *to)
{
	void *nest = asymq_host_nest(to, ASYMQ_STATS_QUEUE);
	struct asymq_count peeked = {}, bypassed = asymq_bypassed(q);
	u64 packets, unknown;

	asymq_must_hold(q);
	asymq_must_hold_tree(q);
	asymq_add_requeued(q->sch, &peeked.packets, &peeked.bytes);
	asymq_dump_count(to, ASYMQ_QUEUE_ARRIVED_PACKETS, asymq_sum(q->arrived, bypassed));
	asymq_dump_count(to, ASYMQ_QUEUE_DROPPED_PACKETS, q->dropped);
	asymq_dump_count(to, ASYMQ_QUEUE_FILTERED_PACKETS, q->filtered);
	asymq_dump_count(to, ASYMQ_QUEUE_FLUSHED_PACKETS, q->flushed);
	asymq_dump_count(to, ASYMQ_QUEUE_PEEKED_PACKETS, peeked);
	asymq_dump_count(to, ASYMQ_QUEUE_FALLBACK_SENT_PACKETS, q->fallback_sent);
	asymq_dump_count(to, ASYMQ_QUEUE_FALLBACK_DROPPED_PACKETS, q->fallback_dropped);
	asymq_dump_count(to, ASYMQ_QUEUE_REVERSE_PACKETS, q->reverse);
	asymq_dump_count(to, ASYMQ_QUEUE_BYPASSED_PACKETS, bypassed);
	asymq_host_nest_end(to, nest);
	if (!q->device)
		return;
	nest = asymq_host_nest(to, ASYMQ_STATS_DEVICE);
	asymq_ingress_counts(q, &packets, &unknown);
	asymq_host_number(to, ASYMQ_DEVICE_PACKETS, packets);
	asymq_host_number(to, ASYMQ_DEVICE_UNKNOWN, unknown);
	asymq_host_nest_end(to, nest);
}

/*
 * True if this dump is the notification of a change (the first dump after it) and has no listeners. Statistics are then
 * omitted. Since 6.9, kernels do not create such notifications.
 */
static bool asymq_is_unheard(struct asymq_sched *q, const struct sk_buff *to)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	bool changed = q->changed;

	q->changed = false;
	return changed && !(nlmsg_hdr(to)->nlmsg_flags & NLM_F_MULTI) &&
	       !netlink_has_listeners(dev_net(qdisc_dev(q->sch))->rtnl, RTNLGRP_TC);
#else
	return false;
#endif
}

static int asymq_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct nlattr *nest;

	if (asymq_is_unheard(q, dump->skb))
		return 0;
	nest = nla_nest_start_noflag(dump->skb, TCA_STATS_APP);
	if (!nest)
		return -1;
	nla_put_u32(dump->skb, ASYMQ_STATS_VERSION, ASYMQ_VERSION);
	sch_tree_lock(sch);
	spin_lock(&q->lock);
	asymq_show(q->before, ktime_get_ns(), dump->skb);
	asymq_dump_counts(q, dump->skb);
	if (q->faults)
		nla_put_u32(dump->skb, ASYMQ_STATS_FAILED, q->faults);
	spin_unlock(&q->lock);
	sch_tree_unlock(sch);
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
static void asymq_run_selftest(void)
{
	struct asymq_arena arena;

	if (!selftest)
		return;
	asymq_arena_init(&arena);
	mutex_lock(&asymq_building);
	asymq_arena_open(&arena, 0);
	asymq_selftest(spoil);
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	asymq_arena_free(&arena);
}
#else
static void asymq_run_selftest(void)
{
}
#endif

static int __init asymq_module_init(void)
{
	int err;

	asymq_run_selftest();
	err = asymq_nets_register();
	if (err)
		return err;
	err = register_qdisc(&asymq_ops);
	if (err)
		asymq_nets_unregister();
	return err;
}

static void __exit asymq_module_exit(void)
{
	unregister_qdisc(&asymq_ops);
	asymq_free_foreign();
	asymq_nets_unregister();
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
