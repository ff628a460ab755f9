// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The reverse path: one ingress hook per device. Its observers are the qdiscs of the device that need the other direction.
 * This file also passes departing packets to followers: qdiscs at IFBs, for downlinks.
 *
 * A single observer gets every arriving packet. With several observers, each gets the reverse packets of the flows that
 * it queues. A table of fixed size maps flows to qdiscs. enqueue() fills the table, and replaces the oldest of four
 * entries. An entry expires after a minute without a packet.
 *
 * Observers are added and removed under RTNL. The hook and enqueue() read them under RCU, so removing a qdisc waits for
 * a grace period.
 */

#include <linux/delay.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <net/ip.h>
#include <net/netns/generic.h>
#include "observer.h"

/*
 * A redirect to an IFB takes arriving packets before the device's hooks run. The asymq at the IFB therefore passes these
 * packets to the observers of the device. The device's asymq passes departing packets to the asymq at the IFB, which
 * learns the downlink's rate from both.
 */

static unsigned int asymq_net_id;

struct asymq_net *asymq_net_of(const struct net_device *dev)
{
	return net_generic(dev_net(dev), asymq_net_id);
}

static int __net_init asymq_net_init(struct net *net)
{
	struct asymq_net *here = net_generic(net, asymq_net_id);

	INIT_LIST_HEAD(&here->followers);
	INIT_LIST_HEAD(&here->bypassed);
	INIT_LIST_HEAD(&here->devices);
	return 0;
}

/* Registered as a subsystem, so that the kernel removes it after the namespace's devices and qdiscs. */
static struct pernet_operations asymq_net_ops = {
	.init = asymq_net_init,
	.id = &asymq_net_id,
	.size = sizeof(struct asymq_net),
};

int __init asymq_nets_register(void)
{
	return register_pernet_subsys(&asymq_net_ops);
}

void asymq_nets_unregister(void)
{
	unregister_pernet_subsys(&asymq_net_ops);
}

#ifdef ASYMQ_TEST
static unsigned int linger;
module_param(linger, uint, 0644);
MODULE_PARM_DESC(linger, "microseconds to wait before a packet is passed to an observer or follower");
#define asymq_linger() do { if (linger) udelay(linger); } while (0)
static unsigned int departures;
module_param(departures, uint, 0444);
MODULE_PARM_DESC(departures, "departures that followers have read");
#define asymq_count_departure() (departures++)
static unsigned int flow_hash;
module_param(flow_hash, uint, 0644);
MODULE_PARM_DESC(flow_hash, "hash to give every IP flow, for tests of the flow table; 0 for each flow's own");
#define asymq_tested_hash(hash) (flow_hash ?: (hash))
static unsigned int flow_key;
module_param(flow_key, uint, 0444);
MODULE_PARM_DESC(flow_key, "secret of the last device's flow table");
#define asymq_set_flow_key(key) (flow_key = (key))
#define asymq_must_be_in_table(device, place) \
	WARN_ONCE((place) < (device)->flows || (place) >= (device)->flows + ASYMQ_SETS * ASYMQ_WAYS, "asymq: beyond the flow table")
#define asymq_must_be_of_this_cpu(place, all) WARN_ONCE((place) != this_cpu_ptr(all), "asymq: counters of another CPU")
#define asymq_must_have_left(device, q) do { \
	size_t i; \
\
	for (i = 0; (device)->flows && i < ASYMQ_SETS * ASYMQ_WAYS; i++) \
		WARN_ONCE(READ_ONCE((device)->flows[i].q) == (q), "asymq: a flow of a qdisc that left"); \
} while (0)
#else
#define asymq_must_have_left(device, q) do { } while (0)
#define asymq_tested_hash(hash) (hash)
#define asymq_set_flow_key(key) do { } while (0)
#define asymq_must_be_in_table(device, place) do { } while (0)
#define asymq_must_be_of_this_cpu(place, all) do { } while (0)
#define asymq_linger() do { } while (0)
#define asymq_count_departure() do { } while (0)
#endif

/* Forbids bypass at an IFB, whose packets go to observers, and while a follower needs every departing packet. */
static void asymq_set_bypass(struct asymq_sched *q)
{
	bool bypass = !list_empty(&q->bypassed) && list_empty(&q->net->followers) && !q->ifb;

	sch_tree_lock(q->sch);
	asymq_must_hold_tree(q);
	if (bypass)
		q->sch->flags |= TCQ_F_CAN_BYPASS;
	else
		q->sch->flags &= ~TCQ_F_CAN_BYPASS;
	sch_tree_unlock(q->sch);
}

void asymq_allow_bypass(struct asymq_sched *q, bool allow)
{
	ASSERT_RTNL();
	if (allow == !list_empty(&q->bypassed))
		return;
	if (allow)
		list_add(&q->bypassed, &q->net->bypassed);
	else
		list_del_init(&q->bypassed);
	asymq_set_bypass(q);
}

static void asymq_set_all_bypasses(const struct asymq_net *net)
{
	struct asymq_sched *q;

	list_for_each_entry(q, &net->bypassed, bypassed)
		asymq_set_bypass(q);
}

void asymq_follow(struct asymq_sched *q)
{
	ASSERT_RTNL();
	if (q->follows)
		return;
	WRITE_ONCE(q->follows, true);
	list_add_rcu(&q->followers, &q->net->followers);
	asymq_set_all_bypasses(q->net);
}

void asymq_unfollow(struct asymq_sched *q)
{
	ASSERT_RTNL();
	if (!q->follows)
		return;
	WRITE_ONCE(q->follows, false);
	list_del_rcu(&q->followers);
	asymq_set_all_bypasses(q->net);
	/* Packets that are in asymq_show_followers() may still use it. */
	synchronize_net();
}

/* Without the lock: handles a packet that leaves the device at which this qdisc's packets arrived. */
static void asymq_show_departure(struct asymq_sched *q, struct sk_buff *skb)
{
	struct asymq_frame frame;

	spin_lock(&q->lock);
	if (q->instance) {
		asymq_frame(skb, false, q->scratch, sizeof(q->scratch), &frame);
		frame.nat = false;
		frame.charged = qdisc_pkt_len(skb);
		asymq_must_hold(q);
		asymq_must_fit(q);
		asymq_count_departure();
		asymq_depart(q->instance, ktime_get_ns(), &frame);
	}
	asymq_must_live(q);
	spin_unlock(&q->lock);
}

void asymq_show_followers(const struct asymq_sched *from, struct sk_buff *skb)
{
	struct asymq_sched *q;

	asymq_must_not_hold(from);
	rcu_read_lock();
	list_for_each_entry_rcu(q, &from->net->followers, followers)
		if (READ_ONCE(q->line) == qdisc_dev(from->sch)->ifindex) {
			asymq_linger();
			asymq_show_departure(q, skb);
		}
	rcu_read_unlock();
}

#ifdef CONFIG_NETFILTER_INGRESS

#define ASYMQ_WAYS 4
#define ASYMQ_SETS 8192
#define ASYMQ_SILENT (60 * HZ)

struct asymq_ingress_counts {
	u64_stats_t packets;
	u64_stats_t unknown;	/* packets of unknown flows */
	struct u64_stats_sync syncp;
};

/* Hash of a flow, equal in both directions; 0 for a packet without flow. */
static u32 asymq_flow_hash(struct sk_buff *skb, u32 key)
{
	int at = skb_network_offset(skb);
	__be16 protocol = skb->protocol;
	u32 from, to, ports = 0;
	u8 next;

	if (eth_type_vlan(protocol)) {
		struct vlan_hdr *vlan, space;

		vlan = skb_header_pointer(skb, at, sizeof(space), &space);
		if (!vlan)
			return 0;
		/* The IP header follows a single tag in the packet. */
		if (vlan->h_vlan_encapsulated_proto == htons(ETH_P_IP) ||
		    vlan->h_vlan_encapsulated_proto == htons(ETH_P_IPV6)) {
			protocol = vlan->h_vlan_encapsulated_proto;
			at += VLAN_HLEN;
		} else {
			protocol = vlan_get_protocol(skb);
		}
	}
	if (protocol == htons(ETH_P_IP)) {
		struct iphdr *ip, space;

		ip = skb_header_pointer(skb, at, sizeof(space), &space);
		if (!ip || ip->ihl < 5)
			return 0;
		from = (__force u32)ip->saddr;
		to = (__force u32)ip->daddr;
		next = ip_is_fragment(ip) ? 0 : ip->protocol;
		at += ip->ihl * 4;
	} else if (protocol == htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip, space;

		ip = skb_header_pointer(skb, at, sizeof(space), &space);
		if (!ip)
			return 0;
		from = jhash2((u32 *)&ip->saddr, 4, key);
		to = jhash2((u32 *)&ip->daddr, 4, key);
		next = ip->nexthdr;
		at += sizeof(*ip);
	} else {
		/* Other protocols, such as PPPoE or MPLS. */
		return skb->protocol ? __skb_get_hash_symmetric(skb) : 0;
	}
	if (next == IPPROTO_TCP || next == IPPROTO_UDP) {
		__be16 *port, space[2];

		port = skb_header_pointer(skb, at, sizeof(space), space);
		if (port)
			ports = (__force u16)port[0] ^ (__force u16)port[1];
	}
	return asymq_tested_hash(jhash_3words(from ^ to, from + to, ports << 8 | next, key) ?: 1);
}

static struct asymq_flow *asymq_set(const struct asymq_device *device, u32 hash)
{
	return device->flows + (hash % ASYMQ_SETS) * ASYMQ_WAYS;
}

void asymq_learn_flow(struct asymq_sched *q, struct asymq_device *device, struct sk_buff *skb)
{
	u32 hash = asymq_flow_hash(skb, device->key);
	u32 now = (u32)jiffies, oldest = 0;
	struct asymq_flow *set, *place;
	int way;

	if (!hash)
		return;
	set = place = asymq_set(device, hash);
	for (way = 0; way < ASYMQ_WAYS; way++) {
		u32 age = set[way].hash ? now - set[way].seen : U32_MAX;

		asymq_must_be_in_table(device, &set[way]);
		if (set[way].hash == hash) {
			place = &set[way];
			break;
		}
		if (age >= oldest) {
			oldest = age;
			place = &set[way];
		}
	}
	/* If two CPUs write the same entry, the last one owns it. */
	WRITE_ONCE(place->q, q);
	WRITE_ONCE(place->seen, now);
	WRITE_ONCE(place->hash, hash);
}

static struct asymq_sched *asymq_owner_of(const struct asymq_device *device, struct sk_buff *skb)
{
	struct asymq_sched *only = READ_ONCE(device->only);
	struct asymq_flow *set;
	u32 hash;
	int way;

	if (only)
		return only;
	hash = asymq_flow_hash(skb, device->key);
	if (!hash || !READ_ONCE(device->flows))
		return NULL;
	set = asymq_set(device, hash);
	for (way = 0; way < ASYMQ_WAYS; way++) {
		asymq_must_be_in_table(device, &set[way]);
		if (READ_ONCE(set[way].hash) == hash && (u32)jiffies - READ_ONCE(set[way].seen) < ASYMQ_SILENT)
			return READ_ONCE(set[way].q);
	}
	return NULL;
}

/* Without the lock: handles a packet of the reverse path. With `ingress`, the packet's link header was removed. */
static void asymq_show_reverse(struct asymq_sched *q, struct sk_buff *skb, bool ingress)
{
	unsigned int charged = skb->len + (ingress ? asymq_pulled_header(skb) : 0);
	struct asymq_frame frame;

	spin_lock(&q->lock);
	q->reverse.packets++;
	q->reverse.bytes += charged;
	asymq_must_hold(q);
	if (q->instance && q->observes) {
		asymq_frame(skb, ingress, q->scratch, sizeof(q->scratch), &frame);
		frame.nat = false;
		frame.charged = charged;
		asymq_must_fit(q);
		asymq_observe(q->instance, ktime_get_ns(), &frame);
	}
	asymq_must_live(q);
	spin_unlock(&q->lock);
}

static void asymq_receive(struct asymq_device *device, struct sk_buff *skb, bool ingress)
{
	struct asymq_ingress_counts *counts;
	struct asymq_sched *q;

	asymq_linger();
	counts = this_cpu_ptr(device->counts);
	asymq_must_be_of_this_cpu(counts, device->counts);
	q = asymq_owner_of(device, skb);
	u64_stats_update_begin(&counts->syncp);
	u64_stats_inc(&counts->packets);
	if (!q)
		u64_stats_inc(&counts->unknown);
	u64_stats_update_end(&counts->syncp);
	if (q) {
		asymq_linger();
		asymq_show_reverse(q, skb, ingress);
	}
}

static unsigned int asymq_ingress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	asymq_receive(priv, skb, true);
	return NF_ACCEPT;
}

void asymq_redirected(const struct asymq_sched *q, struct sk_buff *skb)
{
	struct asymq_device *device;

	asymq_must_not_hold(q);
	rcu_read_lock();
	list_for_each_entry_rcu(device, &q->net->devices, list)
		if (device->dev->ifindex == skb->skb_iif)
			asymq_receive(device, skb, false);
	rcu_read_unlock();
}

void asymq_unhook(struct asymq_sched *q)
{
	struct asymq_device *device = q->device;
	int place;

	if (!device)
		return;
	ASSERT_RTNL();
	/* From here on, no packet of this qdisc enters the flow table. */
	spin_lock_bh(&q->lock);
	asymq_must_hold(q);
	WRITE_ONCE(q->device, NULL);
	spin_unlock_bh(&q->lock);
	list_del(&q->observers);
	device->count--;
	WRITE_ONCE(device->only, device->count == 1 ?
		   list_first_entry(&device->observers, struct asymq_sched, observers) : NULL);
	if (device->flows)
		for (place = 0; place < ASYMQ_SETS * ASYMQ_WAYS; place++) {
			asymq_must_be_in_table(device, &device->flows[place]);
			if (device->flows[place].q == q) {
				WRITE_ONCE(device->flows[place].hash, 0);
				WRITE_ONCE(device->flows[place].q, NULL);
			}
		}
	asymq_must_have_left(device, q);
	if (!device->count) {
		nf_unregister_net_hook(dev_net(device->dev), &device->hook);
		list_del_rcu(&device->list);
	}
	/* Packets that are in the hook may still use the qdisc and the device. */
	synchronize_net();
	if (device->count)
		return;
	free_percpu(device->counts);
	kvfree(device->flows);
	kfree(device);
}

static struct asymq_device *asymq_new_device(struct asymq_net *net, struct net_device *dev)
{
	struct asymq_device *device = kzalloc(sizeof(*device), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM, cpu;

	if (!device)
		return ERR_PTR(err);
	device->dev = dev;
	device->key = get_random_u32();
	asymq_set_flow_key(device->key);
	INIT_LIST_HEAD(&device->observers);
	device->counts = alloc_percpu_gfp(struct asymq_ingress_counts, GFP_KERNEL_ACCOUNT);
	device->hook = (struct nf_hook_ops) {
		.hook = asymq_ingress,
		.dev = dev,
		.priv = device,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = INT_MIN,
	};
	if (device->counts) {
		for_each_possible_cpu(cpu)
			u64_stats_init(&per_cpu_ptr(device->counts, cpu)->syncp);
		err = nf_register_net_hook(dev_net(dev), &device->hook);
	}
	if (err) {
		free_percpu(device->counts);
		kfree(device);
		return ERR_PTR(err);
	}
	list_add_rcu(&device->list, &net->devices);
	return device;
}

int asymq_hook(struct asymq_sched *q)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct asymq_device *device = NULL, *other;

	ASSERT_RTNL();
	if (q->device)
		return 0;
	list_for_each_entry(other, &q->net->devices, list)
		if (other->dev == dev)
			device = other;
	if (!device)
		device = asymq_new_device(q->net, dev);
	if (IS_ERR(device))
		return PTR_ERR(device);
	if (device->count == 1 && !device->flows) {
		struct asymq_flow *flows = kvcalloc(ASYMQ_SETS * ASYMQ_WAYS, sizeof(*flows), GFP_KERNEL_ACCOUNT);

		if (!flows)
			return -ENOMEM;
		smp_store_release(&device->flows, flows);
	}
	list_add(&q->observers, &device->observers);
	device->count++;
	WRITE_ONCE(device->only, device->count == 1 ? q : NULL);
	WRITE_ONCE(q->device, device);
	return 0;
}

void asymq_ingress_counts(const struct asymq_sched *q, u64 *packets, u64 *unknown)
{
	const struct asymq_device *device = q->device;
	int cpu;

	*packets = *unknown = 0;
	if (!device)
		return;
	for_each_possible_cpu(cpu) {
		const struct asymq_ingress_counts *counts = per_cpu_ptr(device->counts, cpu);
		u64 arrived, of_no_flow;
		unsigned int start;

		do {
			start = u64_stats_fetch_begin(&counts->syncp);
			arrived = u64_stats_read(&counts->packets);
			of_no_flow = u64_stats_read(&counts->unknown);
		} while (u64_stats_fetch_retry(&counts->syncp, start));
		*packets += arrived;
		*unknown += of_no_flow;
	}
}
#else
void asymq_redirected(const struct asymq_sched *q, struct sk_buff *skb)
{
}

void asymq_unhook(struct asymq_sched *q)
{
}

int asymq_hook(struct asymq_sched *q)
{
	return 0;
}

void asymq_ingress_counts(const struct asymq_sched *q, u64 *packets, u64 *unknown)
{
	*packets = *unknown = 0;
}
#endif
