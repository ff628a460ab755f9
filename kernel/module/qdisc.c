// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * sch_asymq: the disciplines of asymq as a qdisc. Rust decides which packet leaves, waits or goes; C has
 * packets (packets.c), memory (host.c), locks and netlink (here).
 *
 * Every packet that waits is in q->waiting, in the order of arrival, whatever Rust knows of it. So a
 * change builds a new instance and offers it all that waits; and after a fault of Rust's the same list
 * is a FIFO at the shaped rate, until a change.
 *
 * Locks, from the outside in: RTNL for changes and dumps; the tree's lock for qlen, backlog and the packets that a parent
 * holds (gso_skb); the qdisc's own lock for the instance and its counters, so that the ingress hook needs no other wherever
 * in the tree the qdisc is. docs/kernel.md lists every entry.
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
#include "sched.h"

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
MODULE_PARM_DESC(inject, "what Rust does wrong once: forgets, foreign, drops-foreign; or drops, all that wait, or filters, an arrival");

static bool selftest = true;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "run the golden traces when loaded");
static char *spoil = "";
module_param(spoil, charp, 0444);
MODULE_PARM_DESC(spoil, "the discipline of whose recorded trace one byte is changed");
#endif

/* Changes. */

/* A new instance in a new arena, or that the one that is there goes on. */
static int asymq_make(struct asymq_sched *q, const struct asymq_asked *asked, u32 key, struct asymq_arena *arena,
		      struct asymq_built *built, struct netlink_ext_ack *extack)
{
	struct asymq_setup setup = {
		.now = ktime_get_ns(),
		.ifb = q->ifb,
		.before = q->instance,
		.before_numbers = q->said ? &asked->before : NULL,
		.numbers = &asked->numbers,
	};

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

static void asymq_set_rates(struct asymq_sched *q, const struct asymq_built *built)
{
	q->rate = built->shaped ? built->link : 0;
	q->limit = built->limit;
}

/*
 * The instance goes on at other rates, where it can. Those of `line` are asked for, unless they are known. `said` takes the
 * place of the attributes, or, with `line`, is copied over them: a dump reads both under the lock.
 */
static int asymq_go_on(struct Qdisc *sch, const struct asymq_line *line, const void *attributes, struct asymq_said **said,
		       struct asymq_built *built)
{
	struct asymq_sched *q = qdisc_priv(sch);
	int err = 0;
	u64 now;

	sch_tree_lock(sch);
	spin_lock(&q->lock);
	now = ktime_get_ns();
	/* A packet may have found a fault since: then the next change builds. */
	if (q->instance) {
		if (line)
			asymq_goes_on(q->instance, line, built);
		if (built->goes_on) {
			asymq_must_hold(q);
			asymq_move(q->instance, now, built->link, built->reverse);
			asymq_set_rates(q, built);
			if (line)
				memcpy(q->said->attributes, attributes, q->said->len);
			else
				swap(q->said, *said);
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

/* Whether no more is asked for than other rates, at which the instance goes on: what most changes are. */
static bool asymq_change_rates(struct Qdisc *sch, const struct nlattr *options)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_built built = { .shaped = q->rate };
	struct asymq_line line = {};
	const void *said;

	if (!options || !q->said || !q->instance)
		return false;
	said = asymq_read_line(q->said, options, &line);
	if (!said || asymq_go_on(sch, &line, said, NULL, &built) || !built.goes_on)
		return false;
	q->changed_at = jiffies;
	return true;
}

static int asymq_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_built *built = NULL;
	struct asymq_arena arena, old_arena;
	struct asymq_said *said = NULL;
	struct asymq_asked *asked;
	struct sk_buff_head waiting;
	struct sk_buff *skb, *gone;
	unsigned int packets, bytes;
	u64 now;
	int err;

	if (asymq_change_rates(sch, options))
		return 0;
	asymq_arena_init(&arena);
	asymq_arena_init(&old_arena);
	asked = asymq_read_asked(q, options, extack);
	if (IS_ERR(asked))
		return PTR_ERR(asked);
	said = asymq_said_of(asked);
	built = kzalloc(sizeof(*built), GFP_KERNEL);
	err = built && said ? asymq_make(q, asked, jhash(said->attributes, said->len, q->ifb), &arena, built, extack) : -ENOMEM;
	if (!err && built->goes_on) {
		err = asymq_go_on(sch, NULL, NULL, &said, built);
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
		asymq_take_over(built->instance, q->before, q->instance);
	asymq_arena_move(&old_arena, &q->arena);
	asymq_arena_move(&q->arena, &arena);
	q->instance = built->instance;
	q->before = built->instance;
	swap(q->said, said);
	asymq_set_rates(q, built);
	q->observes = built->observes;
	q->learns = built->learns;
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
	/* They are told of all of it below. */
	q->untold = (struct asymq_count) {};
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (packets != sch->q.qlen)
		qdisc_tree_reduce_backlog(sch, packets - sch->q.qlen, bytes - sch->qstats.backlog);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + 1);
	sch_tree_unlock(sch);
	asymq_free_gone(gone);
	asymq_allow_bypass(q, built->bypass);
	if (built->follows)
		asymq_follow(q);
	else
		asymq_unfollow(q);
out:
	if (!err)
		q->changed_at = jiffies;
	if (!q->observes)
		asymq_unhook(q);
	kfree(built);
	kfree(said);
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
	INIT_LIST_HEAD(&q->bypassed);
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
	list_del_init(&q->bypassed);
	qdisc_watchdog_cancel(&q->watchdog);
	asymq_arena_free(&q->arena);
	kfree(q->said);
	asymq_examine_end(q);
}

/* What is shown. */

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

	/* Room is taken without an allocation. A learnt rate goes into the message alone: what was asked for stays as it is. */
	spin_lock_bh(&q->lock);
	options = nla_reserve(skb, TCA_OPTIONS, q->said->len);
	if (options) {
		memcpy(nla_data(options), q->said->attributes, q->said->len);
		asymq_must_hold(q);
		learnt = asymq_learnt(q->before);
		if (learnt)
			asymq_set_u64(options, TCA_ASYMQ_UP, learnt);
	}
	spin_unlock_bh(&q->lock);
	return options ? 0 : -EMSGSIZE;
}

static void asymq_show_count(struct sk_buff *to, u32 id, struct asymq_count count)
{
	asymq_host_number(to, id, count.packets);
	asymq_host_number(to, id + 1, count.bytes);
}

/* What the kernel has sent past the idle qdisc, which it counts as sent by it: an aggregate as its segments. */
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

/* What tc's own counters lack for their sum. In the tree's lock, too: a parent that peeks changes the list in it. */
static void asymq_show_counts(struct asymq_sched *q, struct sk_buff *to)
{
	void *nest = asymq_host_nest(to, ASYMQ_STATS_QUEUE);
	struct asymq_count peeked = {}, bypassed = asymq_bypassed(q);
	u64 packets, unknown;

	asymq_must_hold(q);
	asymq_must_hold_tree(q);
	asymq_add_requeued(q->sch, &peeked.packets, &peeked.bytes);
	asymq_show_count(to, ASYMQ_QUEUE_ARRIVED_PACKETS, asymq_sum(q->arrived, bypassed));
	asymq_show_count(to, ASYMQ_QUEUE_DROPPED_PACKETS, q->dropped);
	asymq_show_count(to, ASYMQ_QUEUE_FILTERED_PACKETS, q->filtered);
	asymq_show_count(to, ASYMQ_QUEUE_FLUSHED_PACKETS, q->flushed);
	asymq_show_count(to, ASYMQ_QUEUE_PEEKED_PACKETS, peeked);
	asymq_show_count(to, ASYMQ_QUEUE_FALLBACK_SENT_PACKETS, q->fallback_sent);
	asymq_show_count(to, ASYMQ_QUEUE_FALLBACK_DROPPED_PACKETS, q->fallback_dropped);
	asymq_show_count(to, ASYMQ_QUEUE_REVERSE_PACKETS, q->reverse);
	asymq_show_count(to, ASYMQ_QUEUE_BYPASSED_PACKETS, bypassed);
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
 * Whether it is the notification of a change, which follows that at once, and nobody listens. Since 6.9 the kernel itself makes
 * none then.
 */
static bool asymq_is_unheard(struct asymq_sched *q, const struct sk_buff *to)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	return q->changed_at && time_before_eq(jiffies, q->changed_at + 1) &&
	       !(nlmsg_hdr(to)->nlmsg_flags & NLM_F_MULTI) &&
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
	asymq_show_counts(q, dump->skb);
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
	asymq_run_selftest();
	return register_qdisc(&asymq_ops);
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
