// SPDX-License-Identifier: MIT OR GPL-2.0
/* Packets on their way through a qdisc, and the reverse path. */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack_core.h>
#endif
#include "sched.h"

/* As the shaper of Rust's: lost time that is made up. */
#define ASYMQ_MAX_LATE (5 * NSEC_PER_MSEC)

/*
 * The source and destination of an IPv4 packet before this machine translated them, by the kernel's connection
 * tracking. A tunnel's packet is left alone: Rust has looked into it.
 */
bool asymq_host_before_nat(const struct sk_buff *skb, __be32 *ends)
{
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	/* What comes in is not tracked yet: it is looked up, and what answers is the other direction. */
	bool reversed = !skb_nfct(skb);
	struct nf_conntrack_tuple tuple;

	if (skb_protocol(skb, true) != htons(ETH_P_IP) || !nf_ct_get_tuple_skb(&tuple, skb))
		return false;
	if (tuple.dst.protonum != IPPROTO_TCP && tuple.dst.protonum != IPPROTO_UDP && tuple.dst.protonum != IPPROTO_ICMP)
		return false;
	ends[reversed] = tuple.src.u3.ip;
	ends[!reversed] = tuple.dst.u3.ip;
	return true;
#else
	return false;
#endif
}

/*
 * Rust is not asked again before the next change. Its memory stays until then, with its counters, which count no
 * waiting packet any more: the list has them.
 */
void asymq_fault(struct asymq_sched *q)
{
	u64 learnt = asymq_settle(q->before);

	q->instance = NULL;
	q->strange = false;
	q->faults++;
	q->free_at = q->rate ? ktime_get_ns() : 0;
	if (learnt)
		q->rate = learnt;
}

/* Faults if Rust has named a packet that is not in this list. */
static inline void asymq_judge(struct asymq_sched *q)
{
	if (likely(!q->strange))
		return;
	pr_err_ratelimited("asymq: fault: a packet of another queue\n");
	asymq_fault(q);
}

/* Rust knows of no packet, but the list has some. */
static void asymq_lost(struct asymq_sched *q)
{
	pr_err_ratelimited("asymq: fault: %u packets are lost from sight\n", skb_queue_len(&q->waiting));
	asymq_fault(q);
}

/* The list and the counters that tc shows. */

static void asymq_put_in(struct asymq_sched *q, struct sk_buff *skb)
{
	asymq_cb(skb)->owner = q;
	__skb_queue_tail(&q->waiting, skb);
	q->sch->q.qlen++;
	qdisc_qstats_backlog_inc(q->sch, skb);
}

/* False if the packet is not in this list. */
static bool asymq_take_out(struct asymq_sched *q, struct sk_buff *skb)
{
	if (asymq_cb(skb)->owner != q) {
		q->strange = true;
		return false;
	}
	asymq_cb(skb)->owner = NULL;
	__skb_unlink(skb, &q->waiting);
	q->sch->q.qlen--;
	qdisc_qstats_backlog_dec(q->sch, skb);
	return true;
}

static void asymq_count(struct asymq_count *count, struct sk_buff *skb)
{
	count->packets++;
	count->bytes += qdisc_pkt_len(skb);
}

void asymq_host_gone(void *host, struct sk_buff *skb, bool filtered)
{
	struct asymq_sched *q = host;

	if (!asymq_take_out(q, skb))
		return;
	if (skb == q->arriving) {
		q->arriving_gone = true;
		q->arriving_filtered = filtered;
	} else {
		asymq_count(&q->untold, skb);
	}
	if (filtered) {
		asymq_count(&q->filtered, skb);
	} else {
		asymq_count(&q->dropped, skb);
		qdisc_qstats_drop(q->sch);
		if (!q->instance)
			asymq_count(&q->fallback_dropped, skb);
	}
	if (q->to_free) {
		__qdisc_drop(skb, q->to_free);
	} else {
		skb->next = q->gone;
		q->gone = skb;
	}
}

/*
 * Tells the parents what went in an operation beside the packet that they know of; without the lock, in theirs. They are
 * told of an empty queue, too.
 */
static inline void asymq_tell_parents(struct asymq_sched *q)
{
	struct asymq_count untold = q->untold;

	if (likely(!untold.packets))
		return;
	q->untold = (struct asymq_count) {};
	qdisc_tree_reduce_backlog(q->sch, untold.packets, untold.bytes);
}

/*
 * The same after an arrival, of which they learn by what is returned. They count it afterwards: if it alone waits, the
 * ancestors would be empty in between, and be forgotten by theirs for good. So it takes the place of one that went.
 */
static inline int asymq_tell_of_arrival(struct asymq_sched *q, int ret, unsigned int len)
{
	if (unlikely(q->untold.packets) && ret == NET_XMIT_SUCCESS && q->sch->q.qlen == 1) {
		struct asymq_count untold = q->untold;

		q->untold = (struct asymq_count) {};
		qdisc_tree_reduce_backlog(q->sch, untold.packets - 1, (int)untold.bytes - (int)len);
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	}
	asymq_tell_parents(q);
	return ret;
}

/* What must be true after every operation. */
#ifdef ASYMQ_TEST
void asymq_examine(struct asymq_sched *q)
{
	unsigned int strange = 0;
	u64 bytes = 0, packets = 0;
	struct sk_buff *skb;

	skb_queue_walk(&q->waiting, skb) {
		packets++;
		bytes += qdisc_pkt_len(skb);
		strange += asymq_cb(skb)->owner != q;
	}
	asymq_must_hold_tree(q);
	asymq_add_requeued(q->sch, &packets, &bytes);
	WARN_ONCE(strange, "asymq: %u packets have no owner", strange);
	WARN_ONCE(packets != q->sch->q.qlen || bytes != q->sch->qstats.backlog,
		  "asymq: %llu packets of %llu bytes wait, %u of %u are counted", packets, bytes, q->sch->q.qlen,
		  q->sch->qstats.backlog);
	WARN_ONCE(q->instance && asymq_waiting(q->instance) != skb_queue_len(&q->waiting),
		  "asymq: %u packets wait, Rust counts %u", skb_queue_len(&q->waiting), asymq_waiting(q->instance));
}
#endif

/* The FIFO after a fault. */

static noinline void asymq_fifo_enqueue(struct asymq_sched *q, u64 now, struct sk_buff *skb)
{
	if (q->sch->q.qlen == 1)
		q->free_at = max(q->free_at, now);
	if (skb_queue_len(&q->waiting) > q->limit)
		asymq_host_gone(q, skb, false);
}

static noinline struct sk_buff *asymq_fifo_dequeue(struct asymq_sched *q, u64 now, u64 *next)
{
	struct sk_buff *skb = skb_peek(&q->waiting);

	*next = q->free_at;
	if (!skb || q->free_at > now)
		return NULL;
	if (q->rate) {
		u64 start = max(q->free_at, now - ASYMQ_MAX_LATE);

		q->free_at = start + div64_u64((u64)qdisc_pkt_len(skb) * 8 * NSEC_PER_SEC, q->rate);
	}
	*next = q->free_at;
	return skb;
}

#ifdef ASYMQ_TEST
enum asymq_misguidance asymq_misguidance;

/* A packet of nobody's; the one before is freed. */
static struct sk_buff *asymq_foreign(void)
{
	static struct sk_buff *foreign;

	kfree_skb(foreign);
	foreign = alloc_skb(64, GFP_ATOMIC);
	return foreign;
}

/* Filters an arrival, as a discipline may, or has Rust drop a packet of nobody's, if that is asked for. */
static bool asymq_filters(struct asymq_sched *q, struct sk_buff *skb)
{
	enum asymq_misguidance how = asymq_misguidance;
	struct sk_buff *foreign;

	if (how != ASYMQ_FILTERS && how != ASYMQ_DROPS_FOREIGN)
		return false;
	asymq_misguidance = ASYMQ_WELL;
	if (how == ASYMQ_FILTERS) {
		asymq_host_gone(q, skb, true);
		return true;
	}
	foreign = asymq_foreign();
	if (foreign)
		asymq_host_gone(q, foreign, false);
	return false;
}
#else
static bool asymq_filters(struct asymq_sched *q, struct sk_buff *skb)
{
	return false;
}
#endif

/* Offers one packet, which joins the list first. */
static __always_inline void asymq_offer_at(struct asymq_sched *q, u64 now, struct sk_buff *skb, u64 arrival)
{
	q->arriving = skb;
	q->arriving_gone = false;
	asymq_put_in(q, skb);
	if (likely(q->instance) && !asymq_filters(q, skb)) {
		if (!asymq_frame_in_place(skb, &q->frame))
			asymq_frame(skb, false, q->scratch, sizeof(q->scratch), &q->frame);
		q->frame.charged = qdisc_pkt_len(skb);
		q->frame.nat = q->nat;
		asymq_must_hold(q);
		asymq_enqueue(q->instance, q, now, arrival, skb, &q->frame);
		asymq_judge(q);
	}
	if (unlikely(!q->instance) && !q->arriving_gone)
		asymq_fifo_enqueue(q, now, skb);
	q->arriving = NULL;
}

void asymq_offer(struct asymq_sched *q, u64 now, struct sk_buff *skb)
{
	asymq_offer_at(q, now, skb, asymq_cb(skb)->arrival);
}

/* Takes one packet; the caller tells the parents. */
static __always_inline int asymq_take(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct asymq_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	bool gone, filtered;

	asymq_cb(skb)->arrival = now;
	if (unlikely(q->ifb))
		asymq_redirected(skb);
	spin_lock(&q->lock);
	q->to_free = to_free;
	asymq_count(&q->arrived, skb);
	asymq_learn(q, skb);
	if (unlikely(q->follows))
		WRITE_ONCE(q->line, skb->skb_iif);
	asymq_offer_at(q, now, skb, now);
	q->to_free = NULL;
	gone = q->arriving_gone;
	filtered = q->arriving_filtered;
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (!gone)
		return NET_XMIT_SUCCESS;
	/* A filtered packet is no loss to its sender, and nothing that a parent should count. */
	return filtered ? NET_XMIT_SUCCESS | __NET_XMIT_STOLEN : NET_XMIT_DROP;
}

/* Counts an aggregate that cannot be segmented. */
static void asymq_refuse(struct asymq_sched *q, struct sk_buff *skb)
{
	spin_lock(&q->lock);
	asymq_count(&q->arrived, skb);
	asymq_count(&q->dropped, skb);
	asymq_count(&q->fallback_dropped, skb);
	spin_unlock(&q->lock);
}

/* What the hardware would segment is segmented here, as sch_tbf does. */
static noinline int asymq_segment(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	int packets = sch->q.qlen, bytes = sch->qstats.backlog;
	unsigned int whole = qdisc_pkt_len(skb);
	struct asymq_sched *q = qdisc_priv(sch);
	struct sk_buff *segs, *nskb;
	bool accepted = false;
	int ret = NET_XMIT_DROP;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		asymq_refuse(q, skb);
		return qdisc_drop(skb, sch, to_free);
	}
	skb_list_walk_safe(segs, segs, nskb) {
		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = segs->len;
#ifdef ASYMQ_PKT_SEGS
		qdisc_skb_cb(segs)->pkt_segs = 1;
#endif
		ret = asymq_take(segs, sch, to_free);
		accepted |= ret == NET_XMIT_SUCCESS;
	}
	/* Nobody lets a parent serve an empty queue, though a segment was taken and then dropped for the next. */
	if (accepted && sch->q.qlen) {
		consume_skb(skb);
		if (packets && sch->q.qlen == 1) {
			/* As in asymq_tell_of_arrival(). */
			ret = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		} else {
			/* They count one packet. */
			packets++;
			bytes += whole;
			ret = NET_XMIT_SUCCESS;
		}
	} else {
		__qdisc_drop(skb, to_free);
		if (accepted)
			ret = NET_XMIT_DROP;
	}
	q->untold = (struct asymq_count) {};
	qdisc_tree_reduce_backlog(sch, packets - (int)sch->q.qlen, bytes - (int)sch->qstats.backlog);
	return ret;
}

int asymq_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	asymq_must_have_told((struct asymq_sched *)qdisc_priv(sch));
	if (unlikely(skb_is_gso(skb)))
		return asymq_segment(skb, sch, to_free);
	ret = asymq_take(skb, sch, to_free);
	return asymq_tell_of_arrival(qdisc_priv(sch), ret, len);
}

/* Frees what went while nobody took it for freeing; outside the lock. */
void asymq_free_gone(struct sk_buff *gone)
{
	while (gone) {
		struct sk_buff *next = gone->next;

		skb_mark_not_on_list(gone);
		kfree_skb(gone);
		gone = next;
	}
}

#ifdef ASYMQ_TEST
/* Has Rust forget all that waits, name a packet of nobody's, or drop all, so that a dequeue ends with nothing. */
static void asymq_misguide(struct asymq_sched *q, struct sk_buff **skb)
{
	enum asymq_misguidance how = asymq_misguidance;

	if (how == ASYMQ_WELL || how == ASYMQ_FILTERS || how == ASYMQ_DROPS_FOREIGN || skb_queue_empty(&q->waiting))
		return;
	asymq_misguidance = ASYMQ_WELL;
	if (how == ASYMQ_FORGETS) {
		asymq_reset(q->instance);
		return;
	}
	if (how == ASYMQ_DROPS_ALL || how == ASYMQ_DROPS_OTHERS) {
		struct asymq_instance *instance = q->instance;
		struct sk_buff *others;

		/* Counted as what C drops without Rust, which forgets it. */
		asymq_reset(instance);
		q->instance = NULL;
		if (how == ASYMQ_DROPS_OTHERS)
			*skb = skb_peek_tail(&q->waiting);
		while ((others = skb_peek(&q->waiting)) != *skb)
			asymq_host_gone(q, others, false);
		q->instance = instance;
		return;
	}
	*skb = asymq_foreign();
}
#else
static void asymq_misguide(struct asymq_sched *q, struct sk_buff **skb)
{
}
#endif

struct sk_buff *asymq_qdisc_dequeue(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = NULL, *gone;
	u64 now, next = U64_MAX;

	/* The kernel asks until nothing is left; a rate that is learnt moves then, too. */
	if (skb_queue_empty(&q->waiting) && !q->learns)
		return NULL;
	now = ktime_get_ns();
	asymq_must_have_told(q);
	spin_lock(&q->lock);
	asymq_misguide(q, &skb);
	if (likely(q->instance) && !skb) {
		asymq_must_hold(q);
		skb = asymq_dequeue(q->instance, q, now);
		if (!skb) {
			next = asymq_next(q->instance);
			if (next == U64_MAX && !skb_queue_empty(&q->waiting))
				asymq_lost(q);
		}
	}
	if (skb && !asymq_take_out(q, skb))
		skb = NULL;
	asymq_judge(q);
	if (unlikely(!q->instance) && !skb) {
		skb = asymq_fifo_dequeue(q, now, &next);
		if (skb) {
			asymq_take_out(q, skb);
			asymq_count(&q->fallback_sent, skb);
		}
	}
	if (skb) {
		qdisc_bstats_update(sch, skb);
		asymq_count(&q->dequeued, skb);
	} else if (!skb_queue_empty(&q->waiting)) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, max(next, now + 1));
	}
	gone = q->gone;
	asymq_examine(q);
	if (unlikely(gone))
		q->gone = NULL;
	spin_unlock(&q->lock);
	if (unlikely(gone)) {
		/* The packet that leaves is still theirs: one that peeks keeps it here, and may not take this for empty. */
		sch->q.qlen += !!skb;
		asymq_tell_parents(q);
		sch->q.qlen -= !!skb;
		asymq_free_gone(gone);
	}
	if (skb)
		asymq_departs(qdisc_dev(sch), skb);
	return skb;
}

void asymq_qdisc_reset(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	qdisc_watchdog_cancel(&q->watchdog);
	spin_lock_bh(&q->lock);
	if (q->instance)
		asymq_reset(q->instance);
	skb_queue_walk(&q->waiting, skb)
		asymq_count(&q->flushed, skb);
	__skb_queue_purge(&q->waiting);
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	spin_unlock_bh(&q->lock);
}

/* The reverse path. */

void asymq_show_reverse(struct asymq_sched *q, struct sk_buff *skb, bool ingress)
{
	struct asymq_frame frame;

	spin_lock(&q->lock);
	q->reverse.packets++;
	q->reverse.bytes += skb->len;
	if (q->instance && q->observes) {
		asymq_frame(skb, ingress, q->scratch, sizeof(q->scratch), &frame);
		frame.nat = false;
		frame.charged = skb->len + (ingress && skb_mac_header_was_set(skb) ? skb_mac_header_len(skb) : 0);
		asymq_must_hold(q);
		asymq_observe(q->instance, ktime_get_ns(), &frame);
	}
	asymq_must_live(q);
	spin_unlock(&q->lock);
}

void asymq_show_departure(struct asymq_sched *q, struct sk_buff *skb)
{
	struct asymq_frame frame;

	spin_lock(&q->lock);
	if (q->instance) {
		asymq_frame(skb, false, q->scratch, sizeof(q->scratch), &frame);
		frame.nat = false;
		frame.charged = qdisc_pkt_len(skb);
		asymq_must_hold(q);
		asymq_depart(q->instance, ktime_get_ns(), &frame);
	}
	asymq_must_live(q);
	spin_unlock(&q->lock);
}
