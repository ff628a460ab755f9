/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Interface between the C half and the Rust half of sch_asymq; ../src/abi.rs declares the same functions and types. */
#ifndef ASYMQ_H
#define ASYMQ_H

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include "wire.h"

struct asymq_instance;	/* defined in Rust */

/* Option values, indexed by attribute number. */
struct asymq_numbers {
	u64 values[ASYMQ_ATTRIBUTES];
	u8 has[ASYMQ_ATTRIBUTES];
};

/* Bytes copied from a packet that is not linear; more than all headers of a pure ACK. */
#define ASYMQ_PREFIX 256

/* Memory of one instance: all memory that Rust allocates while it builds the instance. Freed as a whole. */
struct asymq_arena {
	struct hlist_head small;
	struct hlist_head chunks;
	size_t bytes;
	bool lasts;	/* new allocations exist as long as the instance */
	size_t known;	/* expected bytes of these allocations; 0 if unknown */
};

struct asymq_bytes {
	const u8 *place;
	size_t len;
};

/* The first bytes of a packet, in the form of an Ethernet frame. */
struct asymq_frame {
	struct asymq_bytes start;
	u32 wire_len;	/* length of the whole frame */
	u32 charged;	/* length that the qdisc layer charges */
	u16 segment;	/* payload of each segment of an aggregate (GSO, GRO); 0 for a single packet */
	u16 added;	/* bytes at the start that are not in the packet */
	bool trusted;	/* the checksum need not be verified */
	bool nat;	/* hosts are identified before this machine's NAT */
};

struct asymq_setup {
	u64 now;
	u64 secret[2];
	const struct asymq_numbers *before;	/* options of the present instance, if its rates may change; else NULL */
	const struct asymq_numbers *numbers;
	const struct asymq_numbers *given;	/* the user's options */
	bool ifb;	/* the device is an IFB, which carries a downlink */
};

struct asymq_built {
	struct asymq_instance *instance;	/* NULL if refused, or if the present instance continues */
	u64 link;		/* bit/s */
	u64 reverse;		/* bit/s; 0 if unknown */
	const char *error;	/* reason for the refusal */
	u32 attribute;		/* the invalid attribute; 0 for none */
	u32 limit;		/* packets */
	bool reuse;		/* the present instance continues, at these rates */
	bool shaped;		/* limits packets to the link's rate */
	bool observes;		/* needs packets of the reverse path */
	bool follows;		/* needs packets that leave the device at which its packets arrived */
	bool nat;		/* hosts are identified before this machine's NAT */
	bool learns;		/* the rate is learnt */
	bool follows_rates;	/* rates may change while the instance runs */
	bool bypass;		/* packets may bypass the qdisc while it is idle */
	bool out_of_memory;	/* reason for the refusal */
};

/* Rates in bit/s (reverse: 0 if unknown), and the buffer attribute. */
struct asymq_line {
	u64 up;
	u64 down;
	u64 buffer;
	bool buffer_moves;	/* true if the buffer attribute changed */
};

/* Rust's entry points. They cannot panic: code that could panic does not link. The caller holds the qdisc's lock. */
/* Without the lock: builds an instance in the open arena. */
void asymq_build(const struct asymq_setup *setup, struct asymq_built *built);
/* Takes over the counters of `old`. Also removes the packets of `old`, unless `old` had a fault. */
void asymq_take_over(struct asymq_instance *instance, struct asymq_instance *old, bool whole);
/* Without the lock: default values for a device with this queue length. `numbers` is zeroed. */
void asymq_usual(struct asymq_numbers *numbers, u32 queue_len);
/* Without the lock, with an open arena: recomputes the defaults that depend on the link. Sets only errors in `built`. */
void asymq_derive(struct asymq_numbers *numbers, const struct asymq_numbers *given, struct asymq_built *built);
/* Returns the default buffer at a rate in bit/s, as an attribute's value. */
u64 asymq_usual_buffer(u64 up);
/* Sets reuse, rates and limit of `built` if the instance can continue at these rates. */
void asymq_fits_rates(const struct asymq_instance *instance, const struct asymq_line *line, struct asymq_built *built);
/* Changes the rates, in bit/s; `reverse` is 0 if unknown. */
void asymq_move(struct asymq_instance *instance, u64 now, u64 link, u64 reverse);
/* Returns the learnt rate in bit/s, or 0. */
u64 asymq_learnt(const struct asymq_instance *instance);
/* After a fault: subtracts queued packets from the arrival counters. Returns the learnt rate in bit/s, or 0. */
u64 asymq_settle(struct asymq_instance *instance);
void asymq_enqueue(struct asymq_instance *instance, void *host, u64 now, u64 arrival,
		   struct sk_buff *skb, const struct asymq_frame *frame);
struct sk_buff *asymq_dequeue(struct asymq_instance *instance, void *host, u64 now);
u64 asymq_next(const struct asymq_instance *instance);
void asymq_observe(struct asymq_instance *instance, u64 now, const struct asymq_frame *frame);
void asymq_depart(struct asymq_instance *instance, u64 now, const struct asymq_frame *frame);
void asymq_reset(struct asymq_instance *instance);
u32 asymq_waiting(const struct asymq_instance *instance);
void asymq_show(const struct asymq_instance *instance, u64 now, void *to);
#ifdef ASYMQ_TEST
void asymq_selftest(const char *spoil);
void asymq_host_test_result(const char *name, size_t len, bool same);
void asymq_misread(void);
struct sk_buff *asymq_host_test_packet(const u8 *bytes, size_t len, size_t split);
void asymq_host_test_copy(struct sk_buff *skb, u8 *to, size_t len);
void asymq_host_test_free(struct sk_buff *skb);
void __noreturn asymq_something_can_panic(const char *file, size_t len, u32 line);
#endif

/* C functions that Rust calls. */
void *asymq_host_alloc(size_t size);
void asymq_host_free(void *place, size_t size);
/* Called after the request is parsed. Later allocations exist as long as the instance. */
void asymq_host_lasts(void);
void asymq_host_gone(void *host, struct sk_buff *skb, bool filtered);
const struct asymq_frame *asymq_host_frame(struct sk_buff *skb);
bool asymq_host_mark(struct sk_buff *skb);
bool asymq_host_before_nat(const struct sk_buff *skb, __be32 *ends);
void asymq_host_number(void *to, u32 id, u64 value);
/* Opens a list of numbers. Returns NULL if the message has no room. */
void *asymq_host_nest(void *to, u32 id);
void asymq_host_nest_end(void *to, void *nest);

/* Test build: number of allocations that were not freed. */
#ifdef ASYMQ_TEST
extern atomic_t asymq_alive;
#define asymq_lives(difference) atomic_add(difference, &asymq_alive)
#else
#define asymq_lives(difference) do { } while (0)
#endif

/* host.c */
extern struct mutex asymq_building;
void asymq_arena_init(struct asymq_arena *arena);
void asymq_arena_free(struct asymq_arena *arena);
/* Moves everything into an empty arena. */
void asymq_arena_move(struct asymq_arena *to, struct asymq_arena *from);
/* Makes later allocations use this arena, until asymq_arena_close(). `key` is the hash of the instance's options. */
void asymq_arena_open(struct asymq_arena *arena, u32 key);
void asymq_arena_close(void);
/* True if the arena has no spare page. Also records the needed size, so that the next arena with this key has none. */
bool asymq_arena_is_tight(const struct asymq_arena *arena, u32 key);

/* True if a packet's checksum is correct, or will be filled in. */
static inline bool asymq_is_trusted(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_PARTIAL || skb->ip_summed == CHECKSUM_UNNECESSARY;
}

/*
 * True if a packet begins with an Ethernet header. The device's type is not enough: an IFB has Ethernet's type, but a
 * packet redirected from tun, ppp or raw-IP wwan begins with the network header.
 */
static inline bool asymq_has_ethernet(const struct sk_buff *skb)
{
	/* The offset is smaller without an Ethernet header, and negative without a network header. */
	return skb->dev && skb->dev->type == ARPHRD_ETHER && (unsigned int)skb_network_offset(skb) >= ETH_HLEN;
}

/* Length of the link header that was removed from a packet at ingress. */
static inline unsigned int asymq_pulled_header(const struct sk_buff *skb)
{
	return skb_mac_header_was_set(skb) ? skb_mac_header_len(skb) : 0;
}

/* Fills `frame`, except `charged`. Copies the bytes to `scratch`, unless they are contiguous in the packet. */
void asymq_frame(struct sk_buff *skb, bool ingress, u8 *scratch, size_t capacity,
		 struct asymq_frame *frame);

#endif
