/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Functions of observer.c: the reverse path, departures of other devices, and bypass. */
#ifndef ASYMQ_OBSERVER_H
#define ASYMQ_OBSERVER_H

#include "sched.h"

/* Called when the module is loaded: adds the lists of each namespace. They are removed with the module. */
int asymq_nets_register(void);
void asymq_nets_unregister(void);
struct asymq_net *asymq_net_of(const struct net_device *dev);
/* Under RTNL: starts or stops reading the reverse path. */
int asymq_hook(struct asymq_sched *q);
void asymq_unhook(struct asymq_sched *q);
/* Under RTNL: starts or stops reading packets that leave the device at which this qdisc's packets arrived. */
void asymq_follow(struct asymq_sched *q);
void asymq_unfollow(struct asymq_sched *q);
/* Under RTNL: sets whether packets may bypass this qdisc while it is idle. */
void asymq_allow_bypass(struct asymq_sched *q, bool allow);
/* Without the lock: shows a departing packet to the qdiscs that follow its device. */
void asymq_show_followers(const struct asymq_sched *from, struct sk_buff *skb);
static inline void asymq_departs(const struct asymq_sched *q, struct sk_buff *skb)
{
	if (unlikely(!list_empty(&q->net->followers)))
		asymq_show_followers(q, skb);
}
/* True if a packet at an IFB was redirected at its device's ingress; false if at the egress. */
static inline bool asymq_from_ingress(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_REDIRECT
	return skb_is_redirected(skb) && skb->from_ingress;
#else
	return false;
#endif
}
/* Without the lock: shows a packet at an IFB to the observers of the device at which it arrived. */
void asymq_redirected(const struct asymq_sched *q, struct sk_buff *skb);
/* With the lock: records that this qdisc queues the packet's flow. */
void asymq_learn_flow(struct asymq_sched *q, struct asymq_device *device, struct sk_buff *skb);
static inline void asymq_learn(struct asymq_sched *q, struct sk_buff *skb)
{
#ifdef CONFIG_NETFILTER_INGRESS
	struct asymq_device *device = READ_ONCE(q->device);

	if (device && unlikely(READ_ONCE(device->flows)))
		asymq_learn_flow(q, device, skb);
#endif
}
/* Sets the number of packets that arrived at the device, and of those in unknown flows. */
void asymq_ingress_counts(const struct asymq_sched *q, u64 *packets, u64 *unknown);

#endif
