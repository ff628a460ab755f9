// SPDX-License-Identifier: MIT OR GPL-2.0
/* Packets on their way through a qdisc, and the reverse path. */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif
#include "sched.h"

/* As the shaper of Rust's: lost time that is made up. */
#define ASYMQ_MAX_LATE (5 * NSEC_PER_MSEC)

/* In the packet's own area. */
struct asymq_cb {
	u64 arrival;
};

static struct asymq_cb *asymq_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct asymq_cb));
	return (struct asymq_cb *)qdisc_skb_cb(skb)->data;
}

/* Guarded calls: each has a frame of its own, to which a panic returns. */

static noinline bool asymq_try_enqueue(struct asymq_sched *q, u64 now, struct sk_buff *skb,
				       struct asymq_frame *frame)
{
	return asymq_guarded(asymq_enqueue(q->instance, q, now, asymq_cb(skb)->arrival, skb, frame));
}

static noinline bool asymq_try_dequeue(struct asymq_sched *q, u64 now, struct sk_buff **skb, u64 *next)
{
	return asymq_guarded(({
		*skb = asymq_dequeue(q->instance, q, now);
		*next = asymq_next(q->instance);
	}));
}

static noinline bool asymq_try_observe(struct asymq_sched *q, u64 now, struct asymq_frame *frame)
{
	return asymq_guarded(asymq_observe(q->instance, now, frame));
}

static noinline bool asymq_try_reset(struct asymq_sched *q)
{
	return asymq_guarded(asymq_reset(q->instance));
}

/* Rust is not asked again before the next change. Its memory stays until then. */
void asymq_fault(struct asymq_sched *q)
{
	q->instance = NULL;
	q->faults++;
	q->free_at = ktime_get_ns();
}

/* Packets that leave the list. */

static void asymq_take_out(struct asymq_sched *q, struct sk_buff *skb)
{
	struct Qdisc *sch = q->sch;

	__skb_unlink(skb, &q->waiting);
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
}

void asymq_host_gone(void *host, struct sk_buff *skb, bool filtered)
{
	struct asymq_sched *q = host;

	asymq_take_out(q, skb);
	if (skb == q->arriving) {
		q->arriving_gone = true;
		q->arriving_filtered = filtered;
	} else {
		q->gone_packets++;
		q->gone_bytes += qdisc_pkt_len(skb);
	}
	if (!filtered)
		qdisc_qstats_drop(q->sch);
	if (q->to_free) {
		__qdisc_drop(skb, q->to_free);
	} else {
		skb->next = q->gone;
		q->gone = skb;
	}
}

/* Tells the parents of packets that they have counted and that are gone; without the lock, in theirs. */
static void asymq_tell_parents(struct asymq_sched *q)
{
	unsigned int packets = q->untold_packets + q->gone_packets;
	unsigned int bytes = q->untold_bytes + q->gone_bytes;

	q->gone_packets = 0;
	q->gone_bytes = 0;
	q->untold_packets = packets;
	q->untold_bytes = bytes;
	/* A class that is served now must not be told that it is empty. */
	if (packets && q->sch->q.qlen) {
		q->untold_packets = 0;
		q->untold_bytes = 0;
		qdisc_tree_reduce_backlog(q->sch, packets, bytes);
	}
}

/* The FIFO after a fault. */

static void asymq_fifo_enqueue(struct asymq_sched *q, struct sk_buff *skb)
{
	if (skb_queue_len(&q->waiting) > q->limit)
		asymq_host_gone(q, skb, false);
}

static struct sk_buff *asymq_fifo_dequeue(struct asymq_sched *q, u64 now, u64 *next)
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

/* Offers one packet, which joins the list first. */
void asymq_offer(struct asymq_sched *q, u64 now, struct sk_buff *skb)
{
	struct Qdisc *sch = q->sch;
	struct asymq_frame frame;

	q->arriving = skb;
	q->arriving_gone = false;
	if (!sch->q.qlen)
		q->free_at = max(q->free_at, now);
	__skb_queue_tail(&q->waiting, skb);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	if (q->instance) {
		asymq_frame(skb, false, q->scratch, sizeof(q->scratch), &frame);
		frame.charged = qdisc_pkt_len(skb);
		if (!asymq_try_enqueue(q, now, skb, &frame))
			asymq_fault(q);
	}
	if (!q->instance && !q->arriving_gone)
		asymq_fifo_enqueue(q, skb);
	q->arriving = NULL;
}

static int asymq_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct asymq_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	bool gone, filtered;

	asymq_cb(skb)->arrival = now;
	spin_lock(&q->lock);
	q->to_free = to_free;
	asymq_offer(q, now, skb);
	q->to_free = NULL;
	gone = q->arriving_gone;
	filtered = q->arriving_filtered;
	spin_unlock(&q->lock);
	asymq_tell_parents(q);
	if (!gone)
		return NET_XMIT_SUCCESS;
	/* A filtered packet is no loss to its sender, and nothing that a parent should count. */
	return filtered ? NET_XMIT_SUCCESS | __NET_XMIT_STOLEN : NET_XMIT_DROP;
}

/* What the hardware would segment is segmented here, as sch_tbf does. */
static int asymq_segment(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	struct sk_buff *segs, *nskb;
	unsigned int bytes = 0, whole = qdisc_pkt_len(skb);
	int accepted = 0, ret;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segs, segs, nskb) {
		unsigned int len = segs->len;

		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = len;
		ret = asymq_enqueue_one(segs, sch, to_free);
		if (ret == NET_XMIT_SUCCESS) {
			accepted++;
			bytes += len;
		}
	}
	if (accepted) {
		qdisc_tree_reduce_backlog(sch, 1 - accepted, whole - bytes);
		consume_skb(skb);
		return NET_XMIT_SUCCESS;
	}
	__qdisc_drop(skb, to_free);
	return NET_XMIT_DROP;
}

int asymq_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (skb_is_gso(skb))
		return asymq_segment(skb, sch, to_free);
	return asymq_enqueue_one(skb, sch, to_free);
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

struct sk_buff *asymq_qdisc_dequeue(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = NULL, *gone;
	u64 now = ktime_get_ns(), next = U64_MAX;

	spin_lock(&q->lock);
	if (q->instance && !asymq_try_dequeue(q, now, &skb, &next))
		asymq_fault(q);
	if (!q->instance)
		skb = asymq_fifo_dequeue(q, now, &next);
	if (skb) {
		asymq_take_out(q, skb);
		qdisc_bstats_update(sch, skb);
	} else if (sch->q.qlen) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, max(next, now + 1));
	}
	gone = q->gone;
	q->gone = NULL;
	spin_unlock(&q->lock);
	asymq_tell_parents(q);
	asymq_free_gone(gone);
	return skb;
}

void asymq_qdisc_reset(struct Qdisc *sch)
{
	struct asymq_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	spin_lock_bh(&q->lock);
	if (q->instance && !asymq_try_reset(q))
		asymq_fault(q);
	__skb_queue_purge(&q->waiting);
	q->untold_packets = 0;
	q->untold_bytes = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	spin_unlock_bh(&q->lock);
}

/* The reverse path. */

#ifdef CONFIG_NETFILTER_INGRESS
static unsigned int asymq_ingress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct asymq_sched *q = priv;
	struct asymq_frame frame;

	spin_lock(&q->lock);
	if (q->instance && q->observes) {
		asymq_frame(skb, true, q->scratch, sizeof(q->scratch), &frame);
		frame.charged = skb->len + (skb_mac_header_was_set(skb) ? skb_mac_header_len(skb) : 0);
		if (!asymq_try_observe(q, ktime_get_ns(), &frame))
			asymq_fault(q);
	}
	spin_unlock(&q->lock);
	return NF_ACCEPT;
}

void asymq_unhook(struct asymq_sched *q)
{
	if (!q->hooked)
		return;
	nf_unregister_net_hook(dev_net(qdisc_dev(q->sch)), &q->hook);
	q->hooked = false;
	/* Who is in the hook may still use the state. */
	synchronize_net();
}

int asymq_hook(struct asymq_sched *q)
{
	int err;

	if (q->hooked)
		return 0;
	q->hook = (struct nf_hook_ops) {
		.hook = asymq_ingress,
		.dev = qdisc_dev(q->sch),
		.priv = q,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = INT_MIN,
	};
	err = nf_register_net_hook(dev_net(qdisc_dev(q->sch)), &q->hook);
	q->hooked = !err;
	return err;
}
#else
void asymq_unhook(struct asymq_sched *q)
{
}

int asymq_hook(struct asymq_sched *q)
{
	return 0;
}
#endif
