/* The parts of the kernel that codel, fq_codel, cake and dualpi2 need, in user space. The driver provides the clock
 * and the random numbers. Functions that free a packet report the packet. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_sched.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef s64 ktime_t;
typedef u64 netdev_features_t;

#define __rcu
#define fallthrough __attribute__((fallthrough))
#define likely(x) (x)
#define unlikely(x) (x)
#define BIT(n) (1u << (n))
#define IS_ENABLED(x) 0
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define WARN_ON(x) (x)
#define prefetch(x) ((void)(x))
#define typecheck(type, x) 1
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(t, a, b) min((t)(a), (t)(b))
#define max_t(t, a, b) max((t)(a), (t)(b))
#define clamp_t(t, x, lo, hi) min_t(t, max_t(t, x, lo), hi)
#define mul_u32_u32(a, b) ((u64)(a) * (b))
#define upper_32_bits(x) ((u32)((x) >> 32))
#define lower_32_bits(x) ((u32)(x))
#define U32_MAX UINT32_MAX
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define do_div(n, d) ((n) /= (d))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define cpu_to_be32 htonl
/* A constant expression, as in the kernel. */
#undef htons
#define htons(x) ((u16)(((x) & 0xff) << 8 | ((x) >> 8 & 0xff)))
#define NSEC_PER_SEC 1000000000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L
#define USEC_PER_SEC 1000000L
#define KTIME_MAX INT64_MAX
#define TC_H_MAJ(h) ((h) & 0xffff0000u)
#define TC_H_MIN(h) ((h) & 0xffffu)

static ktime_t now_ns;
static u64 random_state;

static ktime_t ktime_get(void) { return now_ns; }
static u64 ktime_get_ns(void) { return now_ns; }
static ktime_t ktime_sub(ktime_t a, ktime_t b) { return a - b; }
static ktime_t ktime_add_ns(ktime_t t, u64 ns) { return t + ns; }
static ktime_t ktime_add_ms(ktime_t t, u64 ms) { return t + ms * NSEC_PER_MSEC; }
static s64 ktime_to_ns(ktime_t t) { return t; }
static s64 ktime_to_us(ktime_t t) { return t / 1000; }
static bool ktime_before(ktime_t a, ktime_t b) { return a < b; }
static bool ktime_after(ktime_t a, ktime_t b) { return a > b; }
static int ktime_compare(ktime_t a, ktime_t b) { return a < b ? -1 : a > b; }

/* SplitMix64, as in asymq. */
static u64 random_u64(void)
{
	u64 z = (random_state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
static u16 get_random_u16(void) { return random_u64() >> 48; }
static u32 get_random_u32(void) { return random_u64() >> 32; }

static u32 reciprocal_scale(u32 value, u32 part) { return (u64)value * part >> 32; }
static bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
#define after(a, b) before(b, a)

static u32 get_unaligned_be32(const void *p)
{
	u32 v;

	memcpy(&v, p, 4);
	return ntohl(v);
}

/* Lists. */
struct list_head { struct list_head *next, *prev; };
static void INIT_LIST_HEAD(struct list_head *l) { l->next = l->prev = l; }
static bool list_empty(const struct list_head *l) { return l->next == l; }
static void list_add_tail(struct list_head *n, struct list_head *l)
{
	n->prev = l->prev;
	n->next = l;
	l->prev->next = n;
	l->prev = n;
}
static void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}
static void list_move_tail(struct list_head *n, struct list_head *l)
{
	list_del_init(n);
	list_add_tail(n, l);
}
#define list_first_entry(l, type, member) container_of((l)->next, type, member)

/* Packets. */
struct qdisc_skb_cb { u32 pkt_len, pkt_segs; unsigned char data[40]; };
struct sk_buff {
	struct sk_buff *next, *end;
	u32 number, len, truesize, priority, mark, hash, src, dst;
	bool l4_hash;
	u8 ecn;
	u16 data_len;
	struct qdisc_skb_cb cb;
	unsigned char data[128];
};
struct skb_shared_info { u16 gso_size, gso_segs; u32 gso_type; };
enum { SKB_GSO_TCPV4 = 1, SKB_GSO_TCPV6 = 2, SKB_GSO_DODGY = 4 };
#define NETIF_F_GSO_MASK 0

static void leaves(struct sk_buff *skb, const char *how);
static void kfree_skb(struct sk_buff *skb) { leaves(skb, "aqm"); }
static void consume_skb(struct sk_buff *skb) { leaves(skb, "ack-filtered"); }
static void __qdisc_drop(struct sk_buff *skb, struct sk_buff **to_free) { leaves(skb, "over-limit"); }

static struct skb_shared_info no_gso;
#define skb_shinfo(skb) (&no_gso)
static bool skb_is_gso(struct sk_buff *skb) { return false; }
static netdev_features_t netif_skb_features(struct sk_buff *skb) { return 0; }
static struct sk_buff *skb_gso_segment(struct sk_buff *skb, netdev_features_t f) { return NULL; }
#define IS_ERR_OR_NULL(p) (!(p))
#define skb_list_walk_safe(first, skb, next_) for (; skb; skb = next_)
static struct qdisc_skb_cb *qdisc_skb_cb(const struct sk_buff *skb) { return (void *)&skb->cb; }
#define qdisc_cb_private_validate(skb, size) ((void)0)
static u32 qdisc_pkt_len(const struct sk_buff *skb) { return skb->cb.pkt_len; }
static void skb_mark_not_on_list(struct sk_buff *skb) { skb->next = NULL; }
static int skb_network_offset(const struct sk_buff *skb) { return 0; }
static int skb_transport_offset(const struct sk_buff *skb) { return 20; }
static const unsigned char *skb_transport_header(const struct sk_buff *skb) { return skb->data + 20; }
static const unsigned char *skb_mac_header(const struct sk_buff *skb) { return skb->data; }
static void *skb_header_pointer(const struct sk_buff *skb, int offset, int len, void *buf)
{
	return offset + len <= skb->data_len ? (void *)(skb->data + offset) : NULL;
}
static bool pskb_may_pull(struct sk_buff *skb, int len) { return true; }
static int skb_try_make_writable(struct sk_buff *skb, int len) { return 0; }
static __be16 skb_protocol(const struct sk_buff *skb, bool vlan) { return htons(ETH_P_IP); }
static u32 skb_get_hash(struct sk_buff *skb) { return skb->hash; }
static int skb_get_dsfield(struct sk_buff *skb) { return skb->data[1]; }
static struct iphdr *ip_hdr(struct sk_buff *skb) { return (void *)skb->data; }
static struct ipv6hdr *ipv6_hdr(struct sk_buff *skb) { return (void *)skb->data; }
#define INET_ECN_NOT_ECT 0
#define INET_ECN_MASK 3
static u8 ipv4_get_dsfield(const struct iphdr *ip) { return ip->tos; }
static u8 ipv6_get_dsfield(const struct ipv6hdr *ip) { return 0; }
static void ipv4_change_dsfield(struct iphdr *ip, u8 mask, u8 value) {}
static void ipv6_change_dsfield(struct ipv6hdr *ip, u8 mask, u8 value) {}
#define iph_totlen(skb, ip) ntohs((ip)->tot_len)
#define ipv6_payload_len(skb, ip) ntohs((ip)->payload_len)
static int ipv6_addr_cmp(const struct in6_addr *a, const struct in6_addr *b)
{
	return memcmp(a, b, sizeof(*a));
}
static int INET_ECN_set_ce(struct sk_buff *skb)
{
	if (!skb->ecn)
		return 0;
	skb->ecn = 3;
	return 1;
}

/* TCP. */
#define __tcp_hdrlen(t) ((t)->doff * 4)
#define TCPOPT_NOP 1
#define TCPOPT_EOL 0
#define TCPOPT_MSS 2
#define TCPOPT_WINDOW 3
#define TCPOPT_SACK_PERM 4
#define TCPOPT_SACK 5
#define TCPOPT_TIMESTAMP 8
#define TCPOPT_MD5SIG 19
#define TCPOPT_FASTOPEN 34
#define TCPOPT_EXP 254
#define TCPOLEN_TIMESTAMP 10
#define TCPOLEN_SACK_BASE 2
struct tcp_sack_block_wire { __be32 start_seq, end_seq; };

/* Flow keys; the driver provides the hashes. */
enum { FLOW_DISSECTOR_KEY_IPV4_ADDRS = 1, FLOW_DISSECTOR_KEY_IPV6_ADDRS };
#define FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL 0
struct flow_keys {
	struct { u16 addr_type; } control;
	struct { u8 ip_proto; } basic;
	struct { u32 flow_label; } tags;
	struct { u32 keyid; } keyid;
	struct { u32 ports; u16 src, dst; } ports;
	struct {
		struct { u32 src, dst; } v4addrs;
		struct { struct in6_addr src, dst; } v6addrs;
	} addrs;
};
static void skb_flow_dissect_flow_keys(const struct sk_buff *skb, struct flow_keys *k, int flags)
{
	memset(k, 0, sizeof(*k));
	k->control.addr_type = FLOW_DISSECTOR_KEY_IPV4_ADDRS;
	k->addrs.v4addrs.src = skb->src;
	k->addrs.v4addrs.dst = skb->dst;
}
static u32 flow_hash_from_keys(struct flow_keys *k)
{
	return k->addrs.v4addrs.src + k->addrs.v4addrs.dst;
}

/* Qdiscs. */
struct tcf_proto;
struct tcf_block;
struct tcf_result { u32 classid; };
struct qdisc_watchdog { int unused; };
struct hrtimer { int unused; };
enum qdisc_drop_reason { QDISC_DROP_OVERLIMIT, QDISC_DROP_CONGESTED, QDISC_DROP_L4S_STEP_NON_ECN };
struct sk_buff_list { struct sk_buff *head, *tail; u32 qlen; };
struct Qdisc {
	u32 limit, flags, handle;
	struct sk_buff_list q, gso_skb;
	struct { u32 backlog, drops, overlimits; } qstats;
	void *data;
};
#define TCQ_F_CAN_BYPASS 0
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_CN 2
#define __NET_XMIT_BYPASS 4
#define __NET_XMIT_STOLEN 8
#define rcu_dereference_bh(p) NULL
#define tcf_classify(...) (-1)
#define tcf_classify_qdisc(...) (-1)
#define qdisc_priv(sch) ((sch)->data)
#define qdisc_dev(sch) 0
#define psched_mtu(dev) 1514
#define qdisc_qlen(sch) ((sch)->q.qlen)
#define qdisc_qlen_inc(sch) ((sch)->q.qlen++)
#define qdisc_qlen_dec(sch) ((sch)->q.qlen--)
#define qdisc_peek_head(sch) ((sch)->q.head)
#define qdisc_tree_reduce_backlog(...) ((void)0)
#define qdisc_watchdog_schedule_ns(...) ((void)0)
#define qdisc_bstats_update(...) ((void)0)
#define qdisc_qstats_drop(sch) ((sch)->qstats.drops++)
#define __qdisc_qstats_drop(sch, n) ((sch)->qstats.drops += (n))
#define qdisc_qstats_overlimit(sch) ((sch)->qstats.overlimits++)
#define qdisc_qstats_backlog_inc(sch, skb) ((sch)->qstats.backlog += qdisc_pkt_len(skb))
#define qdisc_qstats_backlog_dec(sch, skb) ((sch)->qstats.backlog -= qdisc_pkt_len(skb))
#define qdisc_dequeue_drop(sch, skb, reason) leaves(skb, "aqm")
#define skb_peek(list) ((struct sk_buff *)NULL)
#define __skb_queue_head(list, skb) ((void)0)

static struct sk_buff *__qdisc_dequeue_head(struct sk_buff_list *q)
{
	struct sk_buff *skb = q->head;

	if (skb) {
		q->head = skb->next;
		q->qlen--;
	}
	return skb;
}
static int qdisc_enqueue_tail(struct sk_buff *skb, struct Qdisc *sch)
{
	skb->next = NULL;
	if (sch->q.head)
		sch->q.tail->next = skb;
	else
		sch->q.head = skb;
	sch->q.tail = skb;
	sch->q.qlen++;
	sch->qstats.backlog += qdisc_pkt_len(skb);
	return NET_XMIT_SUCCESS;
}
static int qdisc_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	__qdisc_drop(skb, to_free);
	return 1;
}
static int qdisc_drop_reason(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
			     enum qdisc_drop_reason reason)
{
	if (reason == QDISC_DROP_OVERLIMIT)
		return qdisc_drop(skb, sch, to_free);
	leaves(skb, "aqm");
	return 1;
}
