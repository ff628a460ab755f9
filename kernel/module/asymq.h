/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the C half and the Rust half of sch_asymq owe each other; ../src/abi.rs has the same. */
#ifndef ASYMQ_H
#define ASYMQ_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include "wire.h"

struct asymq_instance;	/* Rust's */

/* Values by the numbers of their attributes. */
struct asymq_numbers {
	u64 values[ASYMQ_ATTRIBUTES];
	u8 has[ASYMQ_ATTRIBUTES];
};

/* Bytes of a packet that are copied where they do not lie in one piece: more than all headers of a pure ACK. */
#define ASYMQ_PREFIX 256

/* Memory of one instance: all that Rust allocates while it is built, freed at once. */
struct asymq_arena {
	struct hlist_head small;
	struct hlist_head chunks;
	size_t bytes;
	bool lasts;	/* what is allocated now stays */
	size_t known;	/* bytes of all that stays; 0 if that is not known */
};

struct asymq_bytes {
	const u8 *place;
	size_t len;
};

/* The first bytes of a packet, as a frame on Ethernet. */
struct asymq_frame {
	struct asymq_bytes start;
	u32 wire_len;	/* bytes of the whole frame */
	u32 charged;	/* what the device charges for it */
	u16 segment;	/* payload of each segment of an aggregate; 0 if it is none */
	u16 added;	/* bytes at its start that the packet does not have */
	bool trusted;	/* its checksum is somebody else's care */
	bool nat;	/* its hosts are those before this machine's translation of addresses */
};

struct asymq_setup {
	u64 now;
	u64 secret[2];
	const struct asymq_instance *before;		/* that is changed, unless it had a fault */
	const struct asymq_numbers *before_numbers;	/* what it was made of */
	const struct asymq_numbers *numbers;
	bool ifb;	/* its device is one, through which a downlink passes */
};

struct asymq_built {
	struct asymq_instance *instance;	/* NULL if it was refused, or if the one that is changed goes on */
	u64 link;		/* bit/s */
	u64 reverse;		/* the same; 0 if it is not known */
	const char *error;	/* why it was refused */
	u32 attribute;		/* which is wrong; 0 for none */
	u32 limit;		/* packets */
	bool goes_on;		/* the instance that is changed, at these rates */
	bool shaped;		/* to the link's rate */
	bool observes;
	bool follows;	/* it is to see what leaves the device from which its packets come */
	bool nat;	/* hosts are those before this machine's translation of addresses */
	bool learns;	/* its rate */
	bool bypass;	/* a packet that finds nothing waiting may pass it */
	bool out_of_memory;	/* is why it was refused */
};

/* Rates in bit/s, 0 for a reverse one that is not known, and the attribute of the buffer. */
struct asymq_line {
	u64 up;
	u64 down;
	u64 buffer;
	bool buffer_moves;	/* is another than before */
};

/* Rust's entry points. None can panic: what could would not link. */
void asymq_build(const struct asymq_setup *setup, struct asymq_built *built);
/* Counts on where `old` stopped; it is emptied unless it had a fault. */
void asymq_take_over(struct asymq_instance *instance, struct asymq_instance *old, bool whole);
/* What a qdisc is where nothing is said, for a device whose queue holds so many packets. `numbers` is zeros. */
void asymq_usual(struct asymq_numbers *numbers, u32 queue_len);
/* Whether it can go on at these rates, all else being as it was: goes_on, rates and limit of `built`. */
void asymq_goes_on(const struct asymq_instance *instance, const struct asymq_line *line, struct asymq_built *built);
/* Goes on at other rates in bit/s; 0 for a reverse one that is not known. */
void asymq_move(struct asymq_instance *instance, u64 now, u64 link, u64 reverse);
/* The rate that was learnt in bit/s, or 0. */
u64 asymq_learnt(const struct asymq_instance *instance);
/* Takes what waits out of the counters, after a fault; the rate that was learnt in bit/s, or 0. */
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

/* What Rust calls. */
void *asymq_host_alloc(size_t size);
void asymq_host_free(void *place, size_t size);
/* The description is read: what is allocated from now on stays. */
void asymq_host_lasts(void);
void asymq_host_gone(void *host, struct sk_buff *skb, bool filtered);
const struct asymq_frame *asymq_host_frame(struct sk_buff *skb);
bool asymq_host_mark(struct sk_buff *skb);
bool asymq_host_before_nat(const struct sk_buff *skb, __be32 *ends);
void asymq_host_number(void *to, u32 id, u64 value);
/* A list of such; NULL if there is no room. */
void *asymq_host_nest(void *to, u32 id);
void asymq_host_nest_end(void *to, void *nest);

/* host.c */
extern struct mutex asymq_building;
void asymq_arena_init(struct asymq_arena *arena);
void asymq_arena_free(struct asymq_arena *arena);
/* All of one into another that is empty. */
void asymq_arena_move(struct asymq_arena *to, struct asymq_arena *from);
/* Whatever is allocated by this task until asymq_arena_close() is the arena's, of an instance whose description has this hash. */
void asymq_arena_open(struct asymq_arena *arena, u32 key);
void asymq_arena_close(void);
/* Whether it has no more pages than it needs; if not, one that is built alike now has. */
bool asymq_arena_is_tight(const struct asymq_arena *arena, u32 key);

/* Whether a packet's checksum is right, or will be. */
static inline bool asymq_is_trusted(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_PARTIAL || skb->ip_summed == CHECKSUM_UNNECESSARY;
}

/* A packet's first bytes; in `scratch` unless they lie in one piece. `charged` is the caller's. */
void asymq_frame(struct sk_buff *skb, bool ingress, u8 *scratch, size_t capacity,
		 struct asymq_frame *frame);

#endif
