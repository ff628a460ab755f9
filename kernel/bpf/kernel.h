/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What aq.bpf.c uses of the kernel. Places of members are the running kernel's, by its BTF. */
#ifndef ASYMQ_BPF_KERNEL_H
#define ASYMQ_BPF_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NSEC_PER_SEC 1000000000ull

/* Types of BPF's own, which the verifier knows by name; older distributions' headers lack some. */
struct bpf_spin_lock {
	__u32 val;
};

struct bpf_list_head {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_list_node {
	__u64 opaque[3];
} __attribute__((aligned(8)));

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

/* Passed on alone; a function of the kernel is found by types that are whole. */
struct __sk_buff {
	__u32 len;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

struct nlattr;
struct netlink_ext_ack;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff {
	unsigned int len;
	char cb[48];
};

struct qdisc_skb_cb {
	unsigned int pkt_len;
};

struct qdisc_skb_head {
	__u32 qlen;
};

struct gnet_stats_queue {
	__u32 backlog;
	__u32 drops;
	__u32 overlimits;
};

struct Qdisc {
	__u32 limit;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

#pragma clang attribute pop

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
	char id[16];
};

#define __kptr __attribute__((btf_type_tag("kptr")))
#define __contains(name, node) __attribute__((btf_decl_tag("contains:" #name ":" #node)))

int bpf_iter_num_new(struct bpf_iter_num *iterator, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *iterator) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *iterator) __ksym;
void *bpf_obj_new_impl(__u64 type, void *meta) __ksym;
void bpf_obj_drop_impl(void *object, void *meta) __ksym;
int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node, void *meta, __u64 off) __ksym;
struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
struct bpf_list_node *bpf_list_front(struct bpf_list_head *head) __ksym;
int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags, struct bpf_dynptr *dynptr) __ksym;
void *bpf_dynptr_slice(const struct bpf_dynptr *dynptr, __u32 offset, void *buffer, __u32 size) __ksym;
void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire, __u64 delta) __ksym;

#endif
