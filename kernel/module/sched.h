/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* State of one qdisc, and the functions that the C files share. */
#ifndef ASYMQ_SCHED_H
#define ASYMQ_SCHED_H

#include <linux/netfilter.h>
#include <linux/u64_stats_sync.h>
#include <net/pkt_sched.h>
#include "asymq.h"

struct asymq_count {
	u64 packets;
	u64 bytes;
};

/* Effective options, and the user's options: the attributes of TCA_OPTIONS, in the order in which tc sends them. */
struct asymq_opts {
	u16 len;
	u8 attributes[] __aligned(NLA_ALIGNTO);
};

/* Options of a change as numbers, and the previous effective options. */
struct asymq_request {
	struct asymq_numbers numbers;
	struct asymq_numbers given;
	struct asymq_numbers before;
	bool derives;	/* recompute the defaults that depend on the link */
};

/* Lists of one network namespace, changed under RTNL. Separate, so that packets do not visit qdiscs of other namespaces. */
struct asymq_net {
	struct list_head followers;	/* qdiscs at IFBs that need departing packets; under RCU */
	struct list_head bypassed;	/* qdiscs that allow bypass */
	struct list_head devices;	/* devices with an ingress hook; under RCU */
};

#ifdef CONFIG_NETFILTER_INGRESS
/* Qdisc that queues a flow's packets. */
struct asymq_flow {
	u32 hash;	/* 0: unused */
	u32 seen;	/* jiffies of the last packet */
	struct asymq_sched *q;
};

/* Observers of one device; see observer.c. */
struct asymq_device {
	struct list_head list;
	struct list_head observers;
	unsigned int count;
	u32 key;
	struct net_device *dev;
	struct nf_hook_ops hook;
	struct asymq_sched *only;	/* the single observer; NULL if there are several */
	struct asymq_flow *flows;	/* NULL until there are several observers */
	struct asymq_ingress_counts __percpu *counts;
};
#endif

/* Private data of a queued packet. */
struct asymq_cb {
	u64 arrival;
	struct asymq_sched *owner;	/* qdisc that queues the packet; NULL for none */
};

static inline struct asymq_cb *asymq_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct asymq_cb));
	return (struct asymq_cb *)qdisc_skb_cb(skb)->data;
}

struct asymq_sched {
	spinlock_t lock;
	struct asymq_instance *instance;	/* NULL after a fault */
	struct asymq_instance *before;		/* the instance before a fault */
	struct asymq_opts *opts;		/* options of the instance */
	struct asymq_arena arena;
	struct sk_buff_head waiting;		/* queued packets, in order of arrival */
	struct sk_buff *next_offer;		/* first packet not yet offered to a new instance; NULL for none */
	unsigned int unoffered;			/* number of packets not yet offered */
	struct qdisc_watchdog watchdog;
	struct Qdisc *sch;

	u64 rate;	/* bit/s; 0 for no shaper */
	u32 limit;	/* in packets, of the FIFO after a fault */
	u64 free_at;	/* time at which the FIFO may send again */
	u32 faults;	/* number of faults since the last change */
	bool observes;		/* needs packets of the reverse path */
	bool changed;		/* the notification of a change has not been dumped yet */
	bool learns;		/* the rate is learnt */
	bool follows_rates;	/* rates may change while the instance runs */
	bool nat;		/* hosts are identified before this machine's NAT */

	/* Valid during one call to Rust. */
	struct sk_buff *arriving;	/* the packet that is being offered */
	struct asymq_frame frame;	/* the frame of that packet */
	struct sk_buff **to_free;	/* argument of enqueue(); otherwise NULL */
	struct sk_buff *gone;		/* packets to free outside the lock, if to_free is NULL */
	bool arriving_gone;
	bool arriving_filtered;
	bool offers_again;		/* the offered packet arrived before a change: the parents already count it */
	bool foreign;			/* Rust named a packet that is not in the list */
	struct asymq_count unreported;	/* packets that left the list, but not yet the parents' counters */

	/* Counters since creation. Invariant: arrived = sent (in tc) + dropped + filtered + flushed + waiting. */
	struct asymq_count arrived;
	struct asymq_count dequeued;
	struct asymq_count dropped;
	struct asymq_count filtered;
	struct asymq_count flushed;	/* removed by a reset */
	/* Packets counted above that Rust did not handle: in the FIFO after a fault, and unsegmentable aggregates. */
	struct asymq_count fallback_sent;
	struct asymq_count fallback_dropped;

	/* See observer.c. */
	struct asymq_net *net;
	struct asymq_device *device;	/* NULL if the reverse path is not needed */
	struct list_head observers;
	struct asymq_count reverse;	/* packets of the reverse path */
	bool ifb;			/* the device is an IFB, so packets arrived at another device */
	bool follows;			/* true if in net->followers */
	int line;			/* index of the device at which the packets arrived */
	struct list_head followers;
	struct list_head bypassed;	/* entry in net->bypassed: packets may bypass the idle qdisc */
#ifdef ASYMQ_TEST
	bool ended;
#endif
	u8 scratch[ASYMQ_PREFIX] __aligned(8);
#ifdef ASYMQ_TEST
	u8 guard[64];	/* zeros, behind the bytes of a frame */
#endif
};

/* Adds packets that a parent peeked at or a driver returned: in qlen, but not in our list. Needs the tree's lock. */
static inline void asymq_add_requeued(struct Qdisc *sch, u64 *packets, u64 *bytes)
{
	struct sk_buff *skb;

	skb_queue_walk(&sch->gso_skb, skb) {
		++*packets;
		*bytes += qdisc_pkt_len(skb);
	}
	skb_queue_walk(&sch->skb_bad_txq, skb) {
		++*packets;
		*bytes += qdisc_pkt_len(skb);
	}
}

/* Assertions of the test build. */
#ifdef ASYMQ_TEST
#define asymq_must_live(q) WARN_ONCE((q)->ended, "asymq: packet for a destroyed qdisc")
#define asymq_must_hold(q) \
	WARN_ONCE(!spin_is_locked(&(q)->lock) || !softirq_count(), "asymq: state used without the lock, or with softirqs enabled")
#define asymq_must_hold_tree(q) \
	WARN_ONCE(!spin_is_locked(qdisc_lock(rcu_dereference_raw((q)->sch->dev_queue->qdisc_sleeping))) || !softirq_count(), \
		  "asymq: tree used without its lock, or with softirqs enabled")
#define asymq_must_have_reported(q) \
	WARN_ONCE((q)->unreported.packets || (q)->gone || (q)->arriving || (q)->to_free || (q)->offers_again || (q)->foreign, \
		  "asymq: an operation left something behind, or dropped packets that its parents count")
#define asymq_must_fit(of) WARN_ONCE(memchr_inv((of)->guard, 0, sizeof((of)->guard)), "asymq: a frame is longer than its memory")
/* On a single CPU, a lock that is held is held by the caller. */
#define asymq_must_not_hold(q) \
	WARN_ONCE(num_online_cpus() == 1 && spin_is_locked((spinlock_t *)&(q)->lock), "asymq: a lock inside of another one")
#else
#define asymq_must_fit(of) do { } while (0)
#define asymq_must_not_hold(q) do { } while (0)
#define asymq_must_live(q) do { } while (0)
#define asymq_must_hold(q) do { } while (0)
#define asymq_must_hold_tree(q) do { } while (0)
#define asymq_must_have_reported(q) do { } while (0)
#endif

/* From packets.c. The caller holds q->lock, unless stated otherwise. */

/* Disables the instance until the next change. See packets.c. */
void asymq_fault(struct asymq_sched *q);
/* Test build: checks that the list, the counters and Rust are consistent. */
#ifdef ASYMQ_TEST
void asymq_examine(struct asymq_sched *q);
/* Error to inject: the last two at the next arrival, the others at the next dequeue. */
enum asymq_misguidance { ASYMQ_WELL, ASYMQ_FORGETS, ASYMQ_NAMES_FOREIGN, ASYMQ_DROPS_ALL, ASYMQ_DROPS_OTHERS,
			ASYMQ_DROPS_FOREIGN, ASYMQ_FILTERS };
extern enum asymq_misguidance asymq_misguidance;
/* Frees the last packet that an injected error used. */
void asymq_free_foreign(void);
#else
static inline void asymq_free_foreign(void)
{
}
static inline void asymq_examine(struct asymq_sched *q)
{
}
#endif
static inline void asymq_examine_end(struct asymq_sched *q)
{
#ifdef ASYMQ_TEST
	WARN_ONCE(hrtimer_active(&q->watchdog.timer), "asymq: timer active in a destroyed qdisc");
	WARN_ONCE(q->device || q->follows || !list_empty(&q->bypassed), "asymq: a destroyed qdisc is in a list");
	q->ended = true;
#endif
}
/* Fast path of asymq_frame() for a linear packet with an Ethernet header. Returns false for other packets. */
static inline bool asymq_frame_in_place(const struct sk_buff *skb, struct asymq_frame *frame)
{
	unsigned int at_hand = skb_headlen(skb);

	if (!asymq_has_ethernet(skb) || at_hand < min_t(unsigned int, skb->len, ASYMQ_PREFIX))
		return false;
	frame->start.place = skb->data;
	frame->start.len = min_t(unsigned int, at_hand, ASYMQ_PREFIX);
	frame->wire_len = skb->len;
	frame->segment = 0;
	frame->added = 0;
	frame->trusted = asymq_is_trusted(skb);
	return true;
}

/* Maximum packets offered again in one call. Bounds the time with the lock at a change and at each later operation. */
#define ASYMQ_OFFERS_AT_CHANGE 1024
#define ASYMQ_OFFERS 32
/* Offers at most `most` of the oldest packets that arrived before a change. */
void asymq_offer_again(struct asymq_sched *q, u64 now, unsigned int most);
/* Without q->lock, with the tree's lock: subtracts dropped packets from the parents' counters. */
void asymq_report_to_parents(struct asymq_sched *q);
/* Without the lock: frees a list of dropped packets. */
void asymq_free_gone(struct sk_buff *gone);
/* Without the lock: the qdisc's operations. */
int asymq_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *asymq_qdisc_dequeue(struct Qdisc *sch);
void asymq_qdisc_reset(struct Qdisc *sch);

/*
 * From values.c, under RTNL. Returns the options of a change: the effective options, overridden by the options of the
 * message. A message with a discipline replaces all options. The result is valid until the next call.
 */
struct asymq_request *asymq_parse_request(struct asymq_sched *q, struct nlattr *options, struct netlink_ext_ack *extack);
/* Converts options to attributes; NULL without memory. */
struct asymq_opts *asymq_opts_new(const struct asymq_request *request);
void asymq_opts_free(struct asymq_opts *opts);
/* Sets the value of an existing attribute. */
void asymq_set_u64(struct nlattr *options, int id, u64 value);
/* If only rates and buffer differ, reads them into `line` and returns all attributes (opts->len bytes); else NULL. */
const void *asymq_read_line(const struct asymq_opts *opts, const struct nlattr *options, struct asymq_line *line);

#endif
