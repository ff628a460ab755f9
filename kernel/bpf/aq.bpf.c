// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * AQ with a fixed share as a qdisc in BPF: pure ACKs and data in a FIFO each, which divide the link by bytes
 * (AQ, sec. 3). Its decisions are those of crates/core (hold/fifo.rs, decide/service/weighted.rs), whose golden traces
 * it is compared with: scripts/kernel-bpf. The kernel takes it at the root of a device, so that it shapes, too.
 */

#include "kernel.h"

#define SHARE_SCALE (1u << 30)
/* Part of a lead that is rounding, as in weighted.rs. */
#define ROUNDING 1024
/* Lost time that is made up, as the shaper of crates/core does. */
#define MAX_LATE (5 * 1000000ull)
#define MAX_WAITING 100000

/* What a user may change at any time, in the map of this section. */
struct config {
	__u64 rate;		/* bytes a second; 0 for no shaper */
	__u32 data_share;	/* of the link while both wait, in steps of 2^-30 */
	__u32 ack_limit;	/* packets */
	__u32 data_limit;
	__s32 overhead;		/* bytes that a packet has on the link beside those of its frame */
};

SEC(".data.config") volatile struct config config = {
	/* AQ's for 1/10 Mbit/s, in a buffer of 50 packets. */
	.data_share = 787971006,
	.ack_limit = 13,
	.data_limit = 37,
};

/* What the goldens must show: 1 charges the wrong class, 2 swaps the shares. */
#ifndef ASYMQ_DEFECT
#define ASYMQ_DEFECT 0
#endif

#ifdef ASYMQ_TEST
/* Packets that may leave. */
SEC(".data.permits") volatile __s64 permits;
#endif

struct waiting {
	struct sk_buff __kptr *skb;
	struct bpf_list_node node;
	__u32 len;	/* as the link charges it */
};

#define private(name) SEC(".data." #name) __attribute__((aligned(8)))
private(queues) struct bpf_spin_lock lock;
private(queues) struct bpf_list_head acks __contains(waiting, node);
private(queues) struct bpf_list_head data __contains(waiting, node);

static __u32 ack_count, data_count;
static __s64 data_lead;	/* what data is ahead of its share: bytes times the other's weight */
static __u64 free_at;
static __u64 owner;	/* the qdisc; 0 for none */

enum { ETH_HLEN = 14, IPV6_HLEN = 40, TCP_HLEN = 20 };
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

struct headers {
	__u8 bytes[TCP_HLEN];
};

/* A TCP segment with ACK, without payload, SYN, FIN or RST; neither fragments nor extension headers are looked through. */
static bool is_pure_ack(struct sk_buff *skb)
{
	__u32 transport, payload;
	struct headers room;
	struct bpf_dynptr packet;
	__u8 *bytes;

	if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &packet))
		return false;
	bytes = bpf_dynptr_slice(&packet, ETH_HLEN - 2, &room, 12);
	if (!bytes)
		return false;
	if (bytes[0] == 0x08 && bytes[1] == 0x00) {
		if (bytes[2] >> 4 != 4 || (bytes[8] & 0x3f) || bytes[9])
			return false;
		transport = (bytes[2] & 15) * 4;
		payload = bytes[4] << 8 | bytes[5];
		bytes = bpf_dynptr_slice(&packet, ETH_HLEN + 9, &room, 1);
	} else if (bytes[0] == 0x86 && bytes[1] == 0xdd) {
		transport = IPV6_HLEN;
		payload = (bytes[6] << 8 | bytes[7]) + IPV6_HLEN;
		bytes = bpf_dynptr_slice(&packet, ETH_HLEN + 6, &room, 1);
	} else {
		return false;
	}
	if (!bytes || bytes[0] != 6)
		return false;
	bytes = bpf_dynptr_slice(&packet, ETH_HLEN + transport, &room, TCP_HLEN);
	if (!bytes || (bytes[13] & (FIN | SYN | RST | ACK)) != ACK)
		return false;
	return payload == transport + (bytes[12] >> 4) * 4;
}

static __u32 frame_len(struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static struct waiting *in(struct bpf_list_node *node)
{
	return (void *)node - __builtin_offsetof(struct waiting, node);
}

static __s64 data_share(void)
{
	return ASYMQ_DEFECT == 2 ? SHARE_SCALE - config.data_share : config.data_share;
}

/* Whether data is served first while both wait: the one whose packet would be through first if each had its share. */
static bool data_is_first(__s64 ack_len, __s64 data_len)
{
	__s64 data_weight = data_share(), ack_weight = SHARE_SCALE - data_weight;
	__s64 later = data_lead + data_len * ack_weight - ack_len * data_weight;
	__s64 rounding = ROUNDING * (ack_len + data_len);

	if (later <= rounding && later >= -rounding)
		return data_lead < -rounding;
	return later < 0;
}

static void charge(bool is_data, __s64 len)
{
	if (ASYMQ_DEFECT == 1)
		is_data = !is_data;
	data_lead += is_data ? len * (SHARE_SCALE - data_share()) : -len * data_share();
}

SEC("struct_ops")
int BPF_PROG(aq_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	__u32 bytes = frame_len(skb);
	__s64 charged = (__s64)bytes + config.overhead;
	bool is_ack = is_pure_ack(skb);
	struct waiting *waiting;

	if (sch->q.qlen >= MAX_WAITING || (is_ack ? ack_count >= config.ack_limit : data_count >= config.data_limit))
		goto drop;
	waiting = bpf_obj_new_impl(bpf_core_type_id_local(struct waiting), NULL);
	if (!waiting)
		goto drop;
	waiting->len = charged > 1 ? charged : 1;
	skb = bpf_kptr_xchg(&waiting->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	bpf_spin_lock(&lock);
	if (is_ack) {
		bpf_list_push_back_impl(&acks, &waiting->node, NULL, 0);
		ack_count++;
	} else {
		bpf_list_push_back_impl(&data, &waiting->node, NULL, 0);
		data_count++;
	}
	bpf_spin_unlock(&lock);
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	return NET_XMIT_SUCCESS;
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* The packet that is served next, out of its queue. */
static struct waiting *take(void)
{
	struct bpf_list_node *ack, *datum, *node = NULL;
	__u32 ack_len = 0, data_len = 0;
	bool is_data;

	bpf_spin_lock(&lock);
	ack = bpf_list_front(&acks);
	if (ack)
		ack_len = in(ack)->len;
	datum = bpf_list_front(&data);
	if (datum)
		data_len = in(datum)->len;
	if (ack && datum) {
		is_data = data_is_first(ack_len, data_len);
		charge(is_data, is_data ? data_len : ack_len);
	} else {
		is_data = datum;
		data_lead = 0;
	}
	if (is_data) {
		node = bpf_list_pop_front(&data);
		data_count--;
	} else if (ack) {
		node = bpf_list_pop_front(&acks);
		ack_count--;
	}
	bpf_spin_unlock(&lock);
	return node ? in(node) : NULL;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(aq_dequeue, struct Qdisc *sch)
{
	__u64 now = bpf_ktime_get_ns(), rate = config.rate;
	struct sk_buff *skb = NULL;
	struct waiting *waiting;
	__u32 len;

	if (!sch->q.qlen)
		return NULL;
#ifdef ASYMQ_TEST
	if (permits <= 0) {
		bpf_qdisc_watchdog_schedule(sch, now + 1000000, 0);
		return NULL;
	}
	permits--;
#endif
	if (rate && free_at > now) {
		sch->qstats.overlimits++;
		bpf_qdisc_watchdog_schedule(sch, free_at, 0);
		return NULL;
	}
	waiting = take();
	if (!waiting)
		return NULL;
	len = waiting->len;
	skb = bpf_kptr_xchg(&waiting->skb, skb);
	bpf_obj_drop_impl(waiting, NULL);
	if (!skb)
		return NULL;
	if (rate) {
		__u64 start = free_at + MAX_LATE < now ? now - MAX_LATE : free_at;

		free_at = start + len * NSEC_PER_SEC / rate;
	}
	sch->q.qlen--;
	sch->qstats.backlog -= frame_len(skb);
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops")
int BPF_PROG(aq_init, struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	/* The queues are this program's: there is one qdisc of it at a time. */
	if (owner)
		return -16; /* EBUSY */
	owner = (__u64)sch;
	free_at = 0;
	return 0;
}

SEC("struct_ops")
void BPF_PROG(aq_reset, struct Qdisc *sch)
{
	struct bpf_iter_num steps;

	bpf_iter_num_new(&steps, 0, MAX_WAITING);
	while (bpf_iter_num_next(&steps)) {
		struct waiting *waiting = take();
		struct sk_buff *skb = NULL;

		if (!waiting)
			break;
		skb = bpf_kptr_xchg(&waiting->skb, skb);
		if (skb)
			bpf_kfree_skb(skb);
		bpf_obj_drop_impl(waiting, NULL);
	}
	bpf_iter_num_destroy(&steps);
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops")
void BPF_PROG(aq_destroy, struct Qdisc *sch)
{
	/* Also called after an init that was refused. */
	if (owner == (__u64)sch)
		owner = 0;
}

SEC(".struct_ops")
struct Qdisc_ops aq = {
	.enqueue = (void *)aq_enqueue,
	.dequeue = (void *)aq_dequeue,
	.init = (void *)aq_init,
	.reset = (void *)aq_reset,
	.destroy = (void *)aq_destroy,
	.id = "bpf_aq",
};

char _license[] SEC("license") = "Dual MIT/GPL";
