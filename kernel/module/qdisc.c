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
#include <linux/slab.h>
#include <linux/u64_stats_sync.h>
#include <linux/version.h>
#include <net/netlink.h>
#include <net/rtnetlink.h>
#include "sched.h"

static unsigned long long defaults[2 * ASYMQ_ATTRIBUTES];
static int defaults_count;
module_param_array(defaults, ullong, &defaults_count, 0444);
MODULE_PARM_DESC(defaults, "what a qdisc is where nothing is said: the numbers that `tc qdisc add ... asymq WORDS numbers` prints");

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

static noinline bool asymq_try_move(struct asymq_sched *q, u64 now, const struct asymq_built *built)
{
	return asymq_guarded(asymq_move(q->instance, now, built->link, built->reverse));
}

static noinline bool asymq_try_learnt(struct asymq_sched *q, u64 *rate)
{
	return asymq_guarded(*rate = asymq_learnt(q->before));
}

static noinline bool asymq_try_usual(struct asymq_numbers *numbers, u32 queue_len)
{
	return asymq_guarded(asymq_usual(numbers, queue_len));
}

static noinline bool asymq_try_show(struct asymq_sched *q, u64 now, void *to)
{
	return asymq_guarded(asymq_show(q->before, now, to));
}

/* Changes. */

/* Not const, since kernels before 6.6 point to it so. */
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
		.reject_message = "asymq: tc's plugin is older than the module; install both of one release",
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

/* Of valid attributes; what is nested in them is left out. */
static void asymq_read(const struct nlattr *nest, struct asymq_numbers *numbers)
{
	const struct nlattr *attr;
	int rest;

	nla_for_each_nested(attr, nest, rest) {
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

/* What the module's parameter says, or else SAD. */
static int asymq_read_defaults(struct asymq_sched *q, struct asymq_said *said)
{
	u32 queue_len = qdisc_dev(q->sch)->tx_queue_len;
	bool whole;
	int i;

	for (i = 0; i + 1 < defaults_count; i += 2)
		if (defaults[i] < ASYMQ_ATTRIBUTES)
			asymq_set(&said->numbers, defaults[i], defaults[i + 1]);
	if (defaults_count) {
		said->given = said->numbers;
		return 0;
	}
	mutex_lock(&asymq_building);
	whole = asymq_try_usual(&said->numbers, queue_len);
	mutex_unlock(&asymq_building);
	return whole ? 0 : -EFAULT;
}

/*
 * What is meant: all that was said before and is not said anew, unless that is another discipline, whose values are all
 * there.
 */
static struct asymq_said *asymq_read_said(struct asymq_sched *q, struct nlattr *options,
					  struct netlink_ext_ack *extack)
{
	struct nlattr *version = NULL, *given = NULL;
	struct asymq_said *said;
	int err;

	if (options) {
		err = nla_validate_nested(options, ASYMQ_ATTRIBUTES - 1, asymq_policy, extack);
		if (err)
			return ERR_PTR(err);
		version = nla_find_nested(options, TCA_ASYMQ_VERSION);
		given = nla_find_nested(options, TCA_ASYMQ_GIVEN);
		if (nla_len(options) && (!version || nla_get_u32(version) != ASYMQ_VERSION)) {
			NL_SET_ERR_MSG(extack, "asymq: tc's plugin is not of the module's version; install both of one release");
			return ERR_PTR(-EINVAL);
		}
	}
	said = kzalloc(sizeof(*said), GFP_KERNEL_ACCOUNT);
	if (!said)
		return ERR_PTR(-ENOMEM);
	if (q->said && !(version && nla_find_nested(options, TCA_ASYMQ_QDISC))) {
		*said = *q->said;
		/* A rate that is given is not learnt. */
		if (version && nla_find_nested(options, TCA_ASYMQ_UP) && !nla_find_nested(options, TCA_ASYMQ_UP_MIN)) {
			said->numbers.has[TCA_ASYMQ_UP_MIN] = said->numbers.has[TCA_ASYMQ_UP_MAX] = 0;
			said->given.has[TCA_ASYMQ_UP_MIN] = said->given.has[TCA_ASYMQ_UP_MAX] = 0;
		}
	} else if (!version) {
		err = asymq_read_defaults(q, said);
		if (err) {
			kfree(said);
			return ERR_PTR(err);
		}
	}
	if (!version)
		return said;
	asymq_read(options, &said->numbers);
	if (given) {
		memset(&said->given, 0, sizeof(said->given));
		asymq_read(given, &said->given);
	} else {
		asymq_read(options, &said->given);
	}
	return said;
}

/* A new instance in a new arena, or that the one that is there goes on. */
static int asymq_make(struct asymq_sched *q, struct asymq_said *said, struct asymq_arena *arena,
		      struct asymq_built *built, struct netlink_ext_ack *extack)
{
	struct asymq_setup setup = {
		.now = ktime_get_ns(),
		.ifb = q->ifb,
		.before = q->instance,
		.before_numbers = q->said ? &q->said->numbers : NULL,
		.numbers = &said->numbers,
	};
	bool whole;

	get_random_bytes(setup.secret, sizeof(setup.secret));
	mutex_lock(&asymq_building);
	asymq_arena_open(arena);
	whole = asymq_try_build(&setup, built);
	if (whole && built->instance && !asymq_arena_is_tight(arena)) {
		asymq_arena_close();
		asymq_arena_free(arena);
		memset(built, 0, sizeof(*built));
		asymq_arena_open(arena);
		whole = asymq_try_build(&setup, built);
	}
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	if (!whole && !arena->exhausted) {
		NL_SET_ERR_MSG(extack, "asymq: a fault; the kernel's log says where");
		return -EFAULT;
	}
	if (!whole || built->out_of_memory) {
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

/* The instance goes on at other rates. */
static int asymq_go_on(struct Qdisc *sch, struct asymq_built *built)
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
	else if (!asymq_try_move(q, now, built))
		err = -EFAULT;
	if (!err)
		asymq_set_rates(q, built);
	else if (q->instance)
		asymq_fault(q);
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + 1);
	sch_tree_unlock(sch);
	return err;
}

static int asymq_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct asymq_built *built = NULL;
	struct asymq_arena arena, old_arena;
	struct asymq_said *said;
	struct sk_buff_head waiting;
	struct sk_buff *skb, *gone;
	unsigned int packets, bytes;
	u64 now;
	int err;

	asymq_arena_init(&arena);
	asymq_arena_init(&old_arena);
	said = asymq_read_said(q, options, extack);
	if (IS_ERR(said))
		return PTR_ERR(said);
	built = kzalloc(sizeof(*built), GFP_KERNEL);
	err = built ? asymq_make(q, said, &arena, built, extack) : -ENOMEM;
	if (!err && built->goes_on) {
		err = asymq_go_on(sch, built);
		if (!err)
			swap(q->said, said);
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

/* All numbers, each as wide as its attribute; -EMSGSIZE where there is no room. */
static int asymq_put(struct sk_buff *skb, const struct asymq_numbers *numbers)
{
	unsigned int id;
	int err = 0;

	for (id = 0; id < ASYMQ_ATTRIBUTES && !err; id++) {
		if (!numbers->has[id] || id == TCA_ASYMQ_VERSION)
			continue;
		switch (asymq_given_policy[id].type) {
		case NLA_U8:
			err = nla_put_u8(skb, id, numbers->values[id]);
			break;
		case NLA_U32:
		case NLA_S32:
			err = nla_put_u32(skb, id, numbers->values[id]);
			break;
		case NLA_U64:
			err = nla_put_u64_64bit(skb, id, numbers->values[id], TCA_ASYMQ_PAD);
			break;
		}
	}
	return err;
}

static int asymq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS), *given;
	u64 learnt = 0;

	if (!nest)
		return -EMSGSIZE;
	spin_lock_bh(&q->lock);
	if (!asymq_try_learnt(q, &learnt) && q->instance)
		asymq_fault(q);
	spin_unlock_bh(&q->lock);
	if (learnt)
		q->said->numbers.values[TCA_ASYMQ_UP] = learnt;
	if (nla_put_u32(skb, TCA_ASYMQ_VERSION, ASYMQ_VERSION) || asymq_put(skb, &q->said->numbers))
		goto cancel;
	given = nla_nest_start(skb, TCA_ASYMQ_GIVEN);
	if (!given || asymq_put(skb, &q->said->given))
		goto cancel;
	nla_nest_end(skb, given);
	return nla_nest_end(skb, nest);
cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
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

/* What tc's own counters lack for their sum. */
static void asymq_show_counts(struct asymq_sched *q, struct sk_buff *to)
{
	void *nest = asymq_host_nest(to, ASYMQ_STATS_QUEUE);
	struct asymq_count peeked = {}, bypassed = asymq_bypassed(q);
	struct sk_buff *skb;
	u64 packets, unknown;

	skb_queue_walk(&q->sch->gso_skb, skb) {
		peeked.packets++;
		peeked.bytes += qdisc_pkt_len(skb);
	}
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

static int asymq_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(dump->skb, TCA_STATS_APP);

	if (!nest)
		return -1;
	nla_put_u32(dump->skb, ASYMQ_STATS_VERSION, ASYMQ_VERSION);
	spin_lock_bh(&q->lock);
	if (!asymq_try_show(q, ktime_get_ns(), dump->skb) && q->instance)
		asymq_fault(q);
	asymq_show_counts(q, dump->skb);
	if (q->faults)
		nla_put_u32(dump->skb, ASYMQ_STATS_FAILED, q->faults);
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
	return asymq_guarded(asymq_selftest(spoil));
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
