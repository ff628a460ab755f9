// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The reverse path: one ingress hook for a device, whatever the number of qdiscs on it that measure the other direction,
 * and what a downlink's qdisc at an IFB needs of the uplink.
 *
 * A single one sees all that comes in. Of several, each sees the reverse of the flows that it queues: what is enqueued
 * says whose its flow is, in a table of fixed size in which the oldest of four gives way, and which forgets a flow that
 * is silent for a minute.
 *
 * Changes are under RTNL. The hook and the packets that are enqueued run in sections of RCU: a qdisc that leaves waits
 * for them.
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
#include "sched.h"

/*
 * An IFB takes what comes in to a device before any hook of that device sees it. So the asymq at an IFB shows it to those
 * who observe that device; and the asymq of that device shows its departures to the one at the IFB, which needs them to
 * learn the downlink's rate.
 */

LIST_HEAD(asymq_followers);
static LIST_HEAD(asymq_bypassed);

/* A follower has to be shown each departure, and the qdisc at an IFB shows each packet. */
static void asymq_set_bypass(struct asymq_sched *q)
{
	bool bypass = !list_empty(&q->bypassed) && list_empty(&asymq_followers) && !q->ifb;

	sch_tree_lock(q->sch);
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
		list_add(&q->bypassed, &asymq_bypassed);
	else
		list_del_init(&q->bypassed);
	asymq_set_bypass(q);
}

static void asymq_set_all_bypasses(void)
{
	struct asymq_sched *q;

	list_for_each_entry(q, &asymq_bypassed, bypassed)
		asymq_set_bypass(q);
}

void asymq_follow(struct asymq_sched *q)
{
	ASSERT_RTNL();
	if (q->follows)
		return;
	q->follows = true;
	list_add_rcu(&q->followers, &asymq_followers);
	asymq_set_all_bypasses();
}

void asymq_unfollow(struct asymq_sched *q)
{
	ASSERT_RTNL();
	if (!q->follows)
		return;
	q->follows = false;
	list_del_rcu(&q->followers);
	asymq_set_all_bypasses();
	/* Who shows it a packet may still use it. */
	synchronize_net();
}

void asymq_show_followers(const struct net_device *dev, struct sk_buff *skb)
{
	struct asymq_sched *q;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &asymq_followers, followers)
		if (READ_ONCE(q->line) == dev->ifindex && net_eq(dev_net(dev), dev_net(qdisc_dev(q->sch))))
			asymq_show_departure(q, skb);
	rcu_read_unlock();
}

#ifdef CONFIG_NETFILTER_INGRESS

#define ASYMQ_WAYS 4
#define ASYMQ_SETS 8192
#define ASYMQ_SILENT (60 * HZ)

struct asymq_ingress_counts {
	u64 packets;
	u64 unknown;	/* of no known flow */
};

static LIST_HEAD(asymq_devices);

#ifdef ASYMQ_TEST
static unsigned int linger;
module_param(linger, uint, 0644);
MODULE_PARM_DESC(linger, "microseconds that the ingress hook waits before it uses a qdisc");
#define asymq_linger() do { if (linger) udelay(linger); } while (0)
#else
#define asymq_linger() do { } while (0)
#endif

/* The same in both directions of a flow; 0 for what is not IP. */
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
		/* Egress has the network header behind the tag, ingress before it. */
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
		/* PPPoE, MPLS and the like. */
		return skb->protocol ? __skb_get_hash_symmetric(skb) : 0;
	}
	if (next == IPPROTO_TCP || next == IPPROTO_UDP) {
		__be16 *port, space[2];

		port = skb_header_pointer(skb, at, sizeof(space), space);
		if (port)
			ports = (__force u16)port[0] ^ (__force u16)port[1];
	}
	return jhash_3words(from ^ to, from + to, ports << 8 | next, key) ?: 1;
}

static struct asymq_flow *asymq_set(const struct asymq_device *device, u32 hash)
{
	return device->flows + (hash % ASYMQ_SETS) * ASYMQ_WAYS;
}

/* A packet that is enqueued says whose its flow is. */
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

		if (set[way].hash == hash) {
			place = &set[way];
			break;
		}
		if (age >= oldest) {
			oldest = age;
			place = &set[way];
		}
	}
	/* Two CPUs may write one place: then it is the last one's, and a packet is shown to either. */
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
	for (way = 0; way < ASYMQ_WAYS; way++)
		if (READ_ONCE(set[way].hash) == hash && (u32)jiffies - READ_ONCE(set[way].seen) < ASYMQ_SILENT)
			return READ_ONCE(set[way].q);
	return NULL;
}

static void asymq_comes_in(struct asymq_device *device, struct sk_buff *skb, bool ingress)
{
	struct asymq_ingress_counts *counts = this_cpu_ptr(device->counts);
	struct asymq_sched *q = asymq_owner_of(device, skb);

	counts->packets++;
	if (q) {
		asymq_linger();
		asymq_show_reverse(q, skb, ingress);
	} else {
		counts->unknown++;
	}
}

static unsigned int asymq_ingress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	asymq_comes_in(priv, skb, true);
	return NF_ACCEPT;
}

void asymq_redirected(struct sk_buff *skb)
{
	struct asymq_device *device;

	rcu_read_lock();
	list_for_each_entry_rcu(device, &asymq_devices, list)
		if (device->dev->ifindex == skb->skb_iif && net_eq(dev_net(device->dev), dev_net(skb->dev)))
			asymq_comes_in(device, skb, false);
	rcu_read_unlock();
}

void asymq_unhook(struct asymq_sched *q)
{
	struct asymq_device *device = q->device;
	int place;

	if (!device)
		return;
	ASSERT_RTNL();
	/* Whose packet is noted now still has the device; nobody's is afterwards. */
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->device, NULL);
	spin_unlock_bh(&q->lock);
	list_del(&q->observers);
	device->count--;
	WRITE_ONCE(device->only, device->count == 1 ?
		   list_first_entry(&device->observers, struct asymq_sched, observers) : NULL);
	if (device->flows)
		for (place = 0; place < ASYMQ_SETS * ASYMQ_WAYS; place++)
			if (device->flows[place].q == q) {
				WRITE_ONCE(device->flows[place].hash, 0);
				WRITE_ONCE(device->flows[place].q, NULL);
			}
	if (!device->count) {
		nf_unregister_net_hook(dev_net(device->dev), &device->hook);
		list_del_rcu(&device->list);
	}
	/* Who is in the hook may still use the state. */
	synchronize_net();
	if (device->count)
		return;
	free_percpu(device->counts);
	kvfree(device->flows);
	kfree(device);
}

static struct asymq_device *asymq_new_device(struct net_device *dev)
{
	struct asymq_device *device = kzalloc(sizeof(*device), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!device)
		return ERR_PTR(err);
	device->dev = dev;
	device->key = get_random_u32();
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
	if (device->counts)
		err = nf_register_net_hook(dev_net(dev), &device->hook);
	if (err) {
		free_percpu(device->counts);
		kfree(device);
		return ERR_PTR(err);
	}
	list_add_rcu(&device->list, &asymq_devices);
	return device;
}

int asymq_hook(struct asymq_sched *q)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct asymq_device *device = NULL, *other;

	ASSERT_RTNL();
	if (q->device)
		return 0;
	list_for_each_entry(other, &asymq_devices, list)
		if (other->dev == dev)
			device = other;
	if (!device)
		device = asymq_new_device(dev);
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
		*packets += per_cpu_ptr(device->counts, cpu)->packets;
		*unknown += per_cpu_ptr(device->counts, cpu)->unknown;
	}
}
#else
void asymq_redirected(struct sk_buff *skb)
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
