/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* One qdisc, as packets.c and qdisc.c share it. */
#ifndef ASYMQ_SCHED_H
#define ASYMQ_SCHED_H

#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/netfilter.h>
#include <net/pkt_sched.h>
#include "asymq.h"

struct asymq_count {
	u64 packets;
	u64 bytes;
};

/* What is in force, and what of it a user gave, as the attributes of TCA_OPTIONS, in the order in which tc sends them. */
struct asymq_said {
	u16 len;
	u8 attributes[] __aligned(NLA_ALIGNTO);
};

/* The same as numbers, of a change, and what was in force before. */
struct asymq_asked {
	struct asymq_numbers numbers;
	struct asymq_numbers given;
	struct asymq_numbers before;
};

#ifdef CONFIG_NETFILTER_INGRESS
/* A flow that somebody queues. */
struct asymq_flow {
	u32 hash;	/* 0 for none */
	u32 seen;	/* jiffies */
	struct asymq_sched *q;
};

/* The observers of one device, of observer.c. */
struct asymq_device {
	struct list_head list;
	struct list_head observers;
	unsigned int count;
	u32 key;
	struct net_device *dev;
	struct nf_hook_ops hook;
	struct asymq_sched *only;	/* NULL if there are several */
	struct asymq_flow *flows;	/* NULL until there are several */
	struct asymq_ingress_counts __percpu *counts;
};
#endif

/* In the packet's own area. */
struct asymq_cb {
	u64 arrival;
	struct asymq_sched *owner;	/* the qdisc in whose list it is; NULL for none */
};

static inline struct asymq_cb *asymq_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct asymq_cb));
	return (struct asymq_cb *)qdisc_skb_cb(skb)->data;
}

struct asymq_sched {
	spinlock_t lock;
	struct asymq_instance *instance;	/* NULL after a fault */
	struct asymq_instance *before;		/* the same even then */
	struct asymq_said *said;		/* what it was made of */
	struct asymq_arena arena;
	struct sk_buff_head waiting;
	struct qdisc_watchdog watchdog;
	struct Qdisc *sch;

	u64 rate;	/* bit/s; 0 for no shaper */
	u32 limit;	/* packets, of the FIFO after a fault */
	u64 free_at;	/* of that FIFO */
	u32 faults;	/* since the last change */
	bool observes;
	unsigned long changed_at;	/* jiffies; 0 before the first change */
	bool learns;	/* its rate */
	bool nat;	/* hosts are those before this machine's translation of addresses */

	/* During one call of Rust's. */
	struct sk_buff *arriving;
	struct asymq_frame frame;	/* its */
	struct sk_buff **to_free;
	struct sk_buff *gone;
	bool arriving_gone;
	bool arriving_filtered;
	bool strange;	/* Rust has named a packet that is not in the list */
	struct asymq_count untold;	/* what went beside it, of which the parents do not know yet */

	/* Since the qdisc was made; what was sent, tc counts. Always arrived = sent + dropped + filtered + flushed + waiting. */
	struct asymq_count arrived;
	struct asymq_count dequeued;
	struct asymq_count dropped;
	struct asymq_count filtered;
	struct asymq_count flushed;	/* by a reset */
	/* Of these, without Rust: the FIFO after a fault, and aggregates that cannot be segmented. */
	struct asymq_count fallback_sent;
	struct asymq_count fallback_dropped;

	/* observer.c; NULL if it sees no reverse path. */
	struct asymq_device *device;
	struct list_head observers;
	struct asymq_count reverse;	/* what it was shown */
	bool ifb;			/* its packets come in to another device */
	bool follows;			/* it is in the list of observer.c */
	int line;			/* index of the device from which its packets come */
	struct list_head followers;
	struct list_head bypassed;	/* in that list, unless it is empty: packets may pass it while it is idle */
#ifdef ASYMQ_TEST
	bool ended;
#endif
	u8 scratch[ASYMQ_PREFIX] __aligned(8);
};

/* Packets that a parent peeked at, or that a driver gave back: they count in qlen, but are not in our list. In the tree's lock. */
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

/* What must be true, in the test build. */
#ifdef ASYMQ_TEST
#define asymq_must_live(q) WARN_ONCE((q)->ended, "asymq: a packet is shown to a qdisc that is no more")
#define asymq_must_hold(q) \
	WARN_ONCE(!spin_is_locked(&(q)->lock) || !softirq_count(), "asymq: state is used without the lock, or with softirqs enabled")
#define asymq_must_hold_tree(q) \
	WARN_ONCE(!spin_is_locked(qdisc_lock(rcu_dereference_raw((q)->sch->dev_queue->qdisc_sleeping))) || !softirq_count(), \
		  "asymq: the tree is used without its lock, or with softirqs enabled")
#define asymq_must_have_told(q) WARN_ONCE((q)->untold.packets, "asymq: the parents do not know what went")
#else
#define asymq_must_live(q) do { } while (0)
#define asymq_must_hold(q) do { } while (0)
#define asymq_must_hold_tree(q) do { } while (0)
#define asymq_must_have_told(q) do { } while (0)
#endif

/* packets.c. The caller has the lock, unless it says otherwise. */

/* Rust is not asked again before the next change. */
void asymq_fault(struct asymq_sched *q);
/* Looks whether the list, the counters and Rust agree, in the test build. */
#ifdef ASYMQ_TEST
void asymq_examine(struct asymq_sched *q);
/* What goes wrong in the next dequeue, or, with the last two, at the next arrival. */
enum asymq_misguidance { ASYMQ_WELL, ASYMQ_FORGETS, ASYMQ_NAMES_FOREIGN, ASYMQ_DROPS_ALL, ASYMQ_DROPS_OTHERS,
			ASYMQ_DROPS_FOREIGN, ASYMQ_FILTERS };
extern enum asymq_misguidance asymq_misguidance;
#else
static inline void asymq_examine(struct asymq_sched *q)
{
}
#endif
static inline void asymq_examine_end(struct asymq_sched *q)
{
#ifdef ASYMQ_TEST
	WARN_ONCE(hrtimer_active(&q->watchdog.timer), "asymq: a timer outlives its qdisc");
	q->ended = true;
#endif
}
/* The same as asymq_frame() of a packet that is linear and not tagged, on Ethernet; false of any other. */
static inline bool asymq_frame_in_place(const struct sk_buff *skb, struct asymq_frame *frame)
{
	unsigned int at_hand = skb_headlen(skb);

	if (skb->dev->type != ARPHRD_ETHER || skb_vlan_tag_present(skb) ||
	    at_hand < min_t(unsigned int, skb->len, ASYMQ_PREFIX))
		return false;
	frame->start.place = skb->data;
	frame->start.len = min_t(unsigned int, at_hand, ASYMQ_PREFIX);
	frame->wire_len = skb->len;
	frame->segment = 0;
	frame->added = 0;
	frame->trusted = asymq_is_trusted(skb);
	return true;
}
/* Offers a packet, which joins those that wait. */
void asymq_offer(struct asymq_sched *q, u64 now, struct sk_buff *skb);
/* Without the lock: frees what left while nobody took it. */
void asymq_free_gone(struct sk_buff *gone);
/* Without the lock: a packet of the reverse path; with its link header in front unless it is at `ingress`. */
void asymq_show_reverse(struct asymq_sched *q, struct sk_buff *skb, bool ingress);
/* Without the lock: a packet that leaves the device from which this qdisc's packets come. */
void asymq_show_departure(struct asymq_sched *q, struct sk_buff *skb);
/* Without the lock: the qdisc's operations. */
int asymq_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *asymq_qdisc_dequeue(struct Qdisc *sch);
void asymq_qdisc_reset(struct Qdisc *sch);

/* values.c, under RTNL. What is meant: all that was said before and is not said anew, unless that is another discipline, whose
 * values are all there. The answer stays until the next call. */
struct asymq_asked *asymq_read_asked(struct asymq_sched *q, struct nlattr *options, struct netlink_ext_ack *extack);
/* As attributes; NULL if there is no memory. */
struct asymq_said *asymq_said_of(const struct asymq_asked *asked);
/* Another value of an attribute that is there. */
void asymq_set_u64(struct nlattr *options, int id, u64 value);
/* Whether nothing but rates and the buffer differ, which are read then: all attributes, as many bytes as were said. */
const void *asymq_read_line(const struct asymq_said *said, const struct nlattr *options, struct asymq_line *line);

/* observer.c. Under RTNL: from now on it sees the reverse path, or no longer. */
int asymq_hook(struct asymq_sched *q);
void asymq_unhook(struct asymq_sched *q);
/* Under RTNL: from now on it is shown what leaves the device from which its packets come, or no longer. */
void asymq_follow(struct asymq_sched *q);
void asymq_unfollow(struct asymq_sched *q);
/* Under RTNL: whether the kernel may send a packet that finds nothing waiting without this qdisc. */
void asymq_allow_bypass(struct asymq_sched *q, bool allow);
/* Without the lock: shows a packet that leaves to those who follow its device. */
extern struct list_head asymq_followers;
void asymq_show_followers(const struct net_device *dev, struct sk_buff *skb);
static inline void asymq_departs(const struct net_device *dev, struct sk_buff *skb)
{
	if (unlikely(!list_empty(&asymq_followers)))
		asymq_show_followers(dev, skb);
}
/* Without the lock: shows a packet that came in to a device and passes an IFB to the observers of that device. */
void asymq_redirected(struct sk_buff *skb);
/* With the lock: a packet that is enqueued. */
void asymq_learn_flow(struct asymq_sched *q, struct asymq_device *device, struct sk_buff *skb);
static inline void asymq_learn(struct asymq_sched *q, struct sk_buff *skb)
{
#ifdef CONFIG_NETFILTER_INGRESS
	struct asymq_device *device = READ_ONCE(q->device);

	if (device && unlikely(READ_ONCE(device->flows)))
		asymq_learn_flow(q, device, skb);
#endif
}
/* Packets that came in to the device, and those of them whose flow nobody queues. */
void asymq_ingress_counts(const struct asymq_sched *q, u64 *packets, u64 *unknown);

#endif
