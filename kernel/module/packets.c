// SPDX-License-Identifier: MIT OR GPL-2.0
/* Packets that pass a qdisc, and packets of the reverse path. */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack_core.h>
#endif
#include "observer.h"

/* Maximum delay that the shaper makes up for; must equal the constant in Rust. */
#define ASYMQ_MAX_LATE (5 * NSEC_PER_MSEC)

/*
 * Reads from connection tracking the source and destination addresses of an IPv4 packet before this machine's NAT.
 * Returns false for tunnel packets, whose inner headers Rust has parsed. Takes no reference.
 */
bool asymq_host_before_nat(const struct sk_buff *skb, __be32 *ends)
{
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	/* A packet from ingress is not tracked yet, so it is looked up; the tuple is then of the other direction. */
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
 * Disables the instance until the next change. Its memory and counters stay until then. Queued packets are subtracted
 * from its counters of arrivals.
 */
void asymq_fault(struct asymq_sched *q)
{
	u64 learnt = asymq_settle(q->before);

	WRITE_ONCE(q->instance, NULL);
	q->foreign = false;
	q->next_offer = NULL;
	q->unoffered = 0;
	q->faults++;
	q->free_at = q->rate ? ktime_get_ns() : 0;
	if (learnt)
		q->rate = learnt;
}

/* Raises a fault if Rust named a packet that is not in this list. */
static inline void asymq_judge(struct asymq_sched *q)
{
	if (likely(!q->foreign))
		return;
	pr_err_ratelimited("asymq: fault: a packet of another queue\n");
	asymq_fault(q);
}

/* Raises a fault: Rust has no packet although the list is not empty. */
static void asymq_lost(struct asymq_sched *q)
{
	pr_err_ratelimited("asymq: fault: %u packets lost\n", skb_queue_len(&q->waiting));
	asymq_fault(q);
}

/* Adds a packet to the list and to tc's counters. */

static void asymq_put_in(struct asymq_sched *q, struct sk_buff *skb)
{
	asymq_must_hold(q);
	asymq_cb(skb)->owner = q;
	__skb_queue_tail(&q->waiting, skb);
	q->sch->q.qlen++;
	qdisc_qstats_backlog_inc(q->sch, skb);
}

/* Removes a packet from the list. Returns false if it is not in the list. */
static bool asymq_take_out(struct asymq_sched *q, struct sk_buff *skb)
{
	asymq_must_hold(q);
	if (asymq_cb(skb)->owner != q || skb == q->next_offer) {
		q->foreign = true;
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
	}
	if (skb != q->arriving || q->offers_again)
		asymq_count(&q->unreported, skb);
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
 * Subtracts the packets dropped by an operation from the parents' counters, even if the queue is empty afterwards.
 * The packet that the operation handled is not subtracted. Needs the tree's lock, not q->lock.
 */
void asymq_report_to_parents(struct asymq_sched *q)
{
	struct asymq_count unreported = q->unreported;

	if (likely(!unreported.packets))
		return;
	asymq_must_hold_tree(q);
	q->unreported = (struct asymq_count) {};
	qdisc_tree_reduce_backlog(q->sch, unreported.packets, unreported.bytes);
}

/*
 * Like asymq_report_to_parents(), but after an arrival. The parents count an arrival only after enqueue() has returned.
 * If the arrival is the only packet, their counters would be zero until then, and they would deactivate the queue
 * permanently. In this case one dropped packet stays counted, and the arrival is not counted.
 */
static inline int asymq_report_arrival(struct asymq_sched *q, int ret, unsigned int len)
{
	if (likely(!q->unreported.packets))
		return ret;
	if (ret == NET_XMIT_SUCCESS && q->sch->q.qlen == 1) {
		struct asymq_count unreported = q->unreported;

		q->unreported = (struct asymq_count) {};
		qdisc_tree_reduce_backlog(q->sch, unreported.packets - 1, (int)unreported.bytes - (int)len);
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	}
	asymq_report_to_parents(q);
	return ret;
}

/* Checks that run after every operation. Their time grows with the queue. */
#ifdef ASYMQ_TEST
static bool examine = true;
module_param(examine, bool, 0644);
MODULE_PARM_DESC(examine, "check the queue after every operation");

void asymq_examine(struct asymq_sched *q)
{
	unsigned int unowned = 0;
	u64 bytes = 0, packets = 0;
	struct sk_buff *skb;

	asymq_must_fit(q);
	if (!examine)
		return;
	skb_queue_walk(&q->waiting, skb) {
		packets++;
		bytes += qdisc_pkt_len(skb);
		unowned += asymq_cb(skb)->owner != q;
	}
	asymq_must_hold_tree(q);
	asymq_add_requeued(q->sch, &packets, &bytes);
	WARN_ONCE(unowned, "asymq: %u packets without an owner", unowned);
	WARN_ONCE(packets != q->sch->q.qlen || bytes != q->sch->qstats.backlog,
		  "asymq: %llu packets of %llu bytes queued, %u of %u counted", packets, bytes, q->sch->q.qlen,
		  q->sch->qstats.backlog);
	WARN_ONCE(q->instance && asymq_waiting(q->instance) + q->unoffered != skb_queue_len(&q->waiting),
		  "asymq: %u packets queued, Rust counts %u, %u not offered", skb_queue_len(&q->waiting),
		  asymq_waiting(q->instance), q->unoffered);
}
#endif

/* FIFO that replaces the instance after a fault. */

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

static struct sk_buff *foreign;

void asymq_free_foreign(void)
{
	kfree_skb(foreign);
	foreign = NULL;
}

/* Returns a packet that is in no queue. Frees the packet returned by the previous call. */
static struct sk_buff *asymq_foreign(void)
{
	asymq_free_foreign();
	foreign = alloc_skb(64, GFP_ATOMIC);
	return foreign;
}

/* Injected errors: filters an arrival, or makes Rust drop a packet that is in no queue. */
static bool asymq_filters(struct asymq_sched *q, struct sk_buff *skb)
{
	enum asymq_misguidance how = asymq_misguidance;

	if (how != ASYMQ_FILTERS && how != ASYMQ_DROPS_FOREIGN)
		return false;
	asymq_misguidance = ASYMQ_WELL;
	if (how == ASYMQ_FILTERS) {
		asymq_host_gone(q, skb, true);
		return true;
	}
	if (asymq_foreign())
		asymq_host_gone(q, foreign, false);
	return false;
}
#else
static bool asymq_filters(struct asymq_sched *q, struct sk_buff *skb)
{
	return false;
}
#endif

/* Offers a packet of the list to Rust. */
static __always_inline void asymq_offer_at(struct asymq_sched *q, u64 now, struct sk_buff *skb, u64 arrival)
{
	q->arriving = skb;
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

void asymq_offer_again(struct asymq_sched *q, u64 now, unsigned int most)
{
	q->offers_again = true;
	while (q->next_offer && most--) {
		struct sk_buff *skb = q->next_offer;

		q->next_offer = skb_queue_is_last(&q->waiting, skb) ? NULL : skb_queue_next(&q->waiting, skb);
		q->unoffered--;
		q->arriving_gone = false;
		asymq_offer_at(q, now, skb, asymq_cb(skb)->arrival);
	}
	q->offers_again = false;
}

/* Enqueues one packet. The caller must report to the parents. */
static __always_inline int asymq_take(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct asymq_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	bool gone, filtered;

	asymq_cb(skb)->arrival = now;
	if (unlikely(q->ifb) && asymq_from_ingress(skb))
		asymq_redirected(q, skb);
	spin_lock(&q->lock);
	q->to_free = to_free;
	asymq_count(&q->arrived, skb);
	asymq_learn(q, skb);
	if (unlikely(READ_ONCE(q->follows)) && asymq_from_ingress(skb))
		WRITE_ONCE(q->line, skb->skb_iif);
	if (unlikely(q->next_offer))
		asymq_offer_again(q, now, ASYMQ_OFFERS);
	q->arriving_gone = false;
	asymq_put_in(q, skb);
	if (likely(!q->next_offer))
		asymq_offer_at(q, now, skb, now);
	else
		q->unoffered++;
	q->to_free = NULL;
	gone = q->arriving_gone;
	filtered = q->arriving_filtered;
	asymq_examine(q);
	spin_unlock(&q->lock);
	if (!gone)
		return NET_XMIT_SUCCESS;
	/* The sender must not see a filtered packet as lost, and the parents must not count it. */
	return filtered ? NET_XMIT_SUCCESS | __NET_XMIT_STOLEN : NET_XMIT_DROP;
}

/* Counts an aggregate that cannot be segmented. */
static void asymq_refuse(struct asymq_sched *q, struct sk_buff *skb)
{
	spin_lock(&q->lock);
	asymq_must_hold(q);
	asymq_count(&q->arrived, skb);
	asymq_count(&q->dropped, skb);
	asymq_count(&q->fallback_dropped, skb);
	spin_unlock(&q->lock);
}

/* Segments an aggregate and enqueues each segment, as sch_tbf does. */
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
	/* The queue may be empty if a segment displaced an earlier one; the parents must not serve it then. */
	if (accepted && sch->q.qlen) {
		consume_skb(skb);
		if (packets && sch->q.qlen == 1) {
			/* See asymq_report_arrival(). */
			ret = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		} else {
			/* The parents count the aggregate as one packet. */
			packets++;
			bytes += whole;
			ret = NET_XMIT_SUCCESS;
		}
	} else {
		__qdisc_drop(skb, to_free);
		if (accepted)
			ret = NET_XMIT_DROP;
	}
	q->unreported = (struct asymq_count) {};
	qdisc_tree_reduce_backlog(sch, packets - (int)sch->q.qlen, bytes - (int)sch->qstats.backlog);
	return ret;
}

int asymq_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	asymq_must_have_reported((struct asymq_sched *)qdisc_priv(sch));
	if (unlikely(skb_is_gso(skb)))
		return asymq_segment(skb, sch, to_free);
	ret = asymq_take(skb, sch, to_free);
	return asymq_report_arrival(qdisc_priv(sch), ret, len);
}

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
/* Injected errors: Rust loses all packets, returns a packet that is in no queue, or drops all and returns none. */
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

		/* Rust loses the packets; C counts them as dropped. */
		asymq_reset(instance);
		q->instance = NULL;
		q->next_offer = NULL;
		q->unoffered = 0;
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

	/* The kernel repeats the call until it gets no packet. With an empty queue, the call updates a learnt rate. */
	if (skb_queue_empty(&q->waiting) && !q->learns)
		return NULL;
	now = ktime_get_ns();
	asymq_must_have_reported(q);
	spin_lock(&q->lock);
	asymq_misguide(q, &skb);
	if (unlikely(q->next_offer))
		asymq_offer_again(q, now, ASYMQ_OFFERS);
	if (likely(q->instance) && !skb) {
		asymq_must_hold(q);
		skb = asymq_dequeue(q->instance, q, now);
		if (!skb) {
			next = asymq_next(q->instance);
			if (q->next_offer)
				next = min(next, now);
			else if (next == U64_MAX && !skb_queue_empty(&q->waiting))
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
		/* The parents still count the returned packet, and a parent that peeks must not see an empty queue. */
		sch->q.qlen += !!skb;
		asymq_report_to_parents(q);
		sch->q.qlen -= !!skb;
		asymq_free_gone(gone);
	}
	if (skb)
		asymq_departs(q, skb);
	return skb;
}

void asymq_qdisc_reset(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	qdisc_watchdog_cancel(&q->watchdog);
	spin_lock_bh(&q->lock);
	asymq_must_hold(q);
	if (q->instance)
		asymq_reset(q->instance);
	skb_queue_walk(&q->waiting, skb)
		asymq_count(&q->flushed, skb);
	__skb_queue_purge(&q->waiting);
	q->next_offer = NULL;
	q->unoffered = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	spin_unlock_bh(&q->lock);
}
