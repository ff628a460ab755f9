// SPDX-License-Identifier: MIT OR GPL-2.0
/* What Rust calls: memory while an instance is built, packets as frames. */

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/inet_ecn.h>
#include <net/sch_generic.h>
#include "sched.h"

/* The most that one instance may have: any owner of a user namespace can make one. */
#define ASYMQ_MAX_BYTES (64UL << 20)

/* One at a time is built, by a task that may sleep. */
DEFINE_MUTEX(asymq_building);
static struct asymq_arena *asymq_arena;

#ifdef ASYMQ_TEST
static int fail_alloc;
module_param(fail_alloc, int, 0644);
MODULE_PARM_DESC(fail_alloc, "which allocation fails next; 0 for none");
static unsigned int allocations;
module_param(allocations, uint, 0644);
MODULE_PARM_DESC(allocations, "allocations so far");
static atomic_t alive = ATOMIC_INIT(0);
static int alive_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%d\n", atomic_read(&alive));
}

static const struct kernel_param_ops alive_ops = { .get = alive_get };
module_param_cb(alive, &alive_ops, NULL, 0444);
MODULE_PARM_DESC(alive, "allocations that are not freed");
#define asymq_lives(difference) atomic_add(difference, &alive)
static atomic_long_t taken = ATOMIC_LONG_INIT(0);
static int taken_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%ld\n", atomic_long_read(&taken));
}

static const struct kernel_param_ops taken_ops = { .get = taken_get };
module_param_cb(taken, &taken_ops, NULL, 0444);
MODULE_PARM_DESC(taken, "bytes of the kernel's memory that all instances take");
#define asymq_weighs(difference) atomic_long_add(difference, &taken)
#else
#define asymq_lives(difference) do { } while (0)
#define asymq_weighs(difference) do { } while (0)
#endif

/* Packets pass with bottom halves disabled; an instance is built with them enabled. */
static bool asymq_in_packet_path(void)
{
	return !in_task() || softirq_count();
}

/*
 * What an instance keeps lies in one chunk of whole pages, one behind the other: powers of two would waste a third of the memory.
 * Its size is known from another that was built of the same values; of one that is not known the first chunks are of what
 * comes. What is gone before, the description of the instance, has places of its own.
 */
struct asymq_known {
	u32 key;	/* hash of what was described */
	size_t bytes;	/* that were kept */
};

/* Where the size is kept of what has this key. */
static struct asymq_known *asymq_known_at(u32 key)
{
	static struct asymq_known known[16];

	return &known[key % ARRAY_SIZE(known)];
}

/* In front of a place of its own. */
struct asymq_small {
	struct hlist_node list;
} __aligned(16);

/* In front of the places of a chunk. */
struct asymq_chunk {
	struct hlist_node list;
	size_t size;
	size_t used;
	unsigned int live;	/* places */
} __aligned(16);

#ifdef ASYMQ_TEST
/* What something takes of the kernel's memory. */
static size_t asymq_taken(const void *place, size_t size)
{
	return is_vmalloc_addr(place) ? PAGE_ALIGN(size) : ksize(place);
}
#endif

void asymq_arena_init(struct asymq_arena *arena)
{
	INIT_HLIST_HEAD(&arena->small);
	INIT_HLIST_HEAD(&arena->chunks);
	arena->bytes = 0;
	arena->lasts = false;
	arena->known = 0;
}

void asymq_arena_move(struct asymq_arena *to, struct asymq_arena *from)
{
	hlist_move_list(&from->small, &to->small);
	hlist_move_list(&from->chunks, &to->chunks);
	to->bytes = from->bytes;
	asymq_arena_init(from);
}

void asymq_arena_free(struct asymq_arena *arena)
{
	struct asymq_small *small;
	struct asymq_chunk *chunk;
	struct hlist_node *next;

	hlist_for_each_entry_safe(small, next, &arena->small, list) {
		asymq_lives(-1);
		asymq_weighs(-asymq_taken(small, 0));
		kfree(small);
	}
	hlist_for_each_entry_safe(chunk, next, &arena->chunks, list) {
		asymq_lives(-1);
		asymq_weighs(-asymq_taken(chunk, chunk->size));
		kvfree(chunk);
	}
	asymq_arena_init(arena);
}

void asymq_arena_open(struct asymq_arena *arena, u32 key)
{
	lockdep_assert_held(&asymq_building);
	if (asymq_known_at(key)->key == key)
		arena->known = asymq_known_at(key)->bytes;
	asymq_arena = arena;
}

void asymq_arena_close(void)
{
	asymq_arena = NULL;
}

static void *asymq_alloc_small(struct asymq_arena *arena, size_t size)
{
	struct asymq_small *small = kmalloc(sizeof(*small) + size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	if (!small)
		return NULL;
	hlist_add_head(&small->list, &arena->small);
	asymq_lives(1);
	asymq_weighs(asymq_taken(small, 0));
	return small + 1;
}

static size_t asymq_chunk_size(size_t places)
{
	return PAGE_ALIGN(sizeof(struct asymq_chunk) + places);
}

static struct asymq_chunk *asymq_new_chunk(struct asymq_arena *arena, size_t places)
{
	gfp_t flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	size_t size = asymq_chunk_size(places);
	struct asymq_chunk *chunk;

	chunk = is_power_of_2(size) ? kvmalloc(size, flags) : __vmalloc(size, flags);
	if (!chunk)
		return NULL;
	chunk->size = size;
	chunk->used = sizeof(*chunk);
	chunk->live = 0;
	hlist_add_head(&chunk->list, &arena->chunks);
	asymq_lives(1);
	asymq_weighs(asymq_taken(chunk, chunk->size));
	return chunk;
}

static void *asymq_alloc_lasting(struct asymq_arena *arena, size_t size)
{
	struct asymq_chunk *chunk;
	void *place;

	size = ALIGN(size, 16);
	hlist_for_each_entry(chunk, &arena->chunks, list)
		if (size <= chunk->size - chunk->used)
			goto found;
	chunk = NULL;
	if (hlist_empty(&arena->chunks) && size < arena->known)
		chunk = asymq_new_chunk(arena, arena->known);
	if (!chunk)
		chunk = asymq_new_chunk(arena, size);
	if (!chunk)
		return NULL;
found:
	place = (void *)chunk + chunk->used;
	chunk->used += size;
	chunk->live++;
	return place;
}

bool asymq_arena_is_tight(const struct asymq_arena *arena, u32 key)
{
	size_t bytes = 0, size = 0;
	struct asymq_chunk *chunk;

	lockdep_assert_held(&asymq_building);
	hlist_for_each_entry(chunk, &arena->chunks, list) {
		bytes += chunk->used - sizeof(*chunk);
		size += chunk->size;
	}
	*asymq_known_at(key) = (struct asymq_known) { key, bytes };
	return size <= asymq_chunk_size(bytes);
}

void asymq_host_lasts(void)
{
	if (!asymq_in_packet_path() && asymq_arena)
		asymq_arena->lasts = true;
}

void *asymq_host_alloc(size_t size)
{
	struct asymq_arena *arena = asymq_arena;
	void *place = NULL;

	if (asymq_in_packet_path() || !arena)
		return NULL;
#ifdef ASYMQ_TEST
	allocations++;
	if (fail_alloc > 0 && --fail_alloc == 0)
		return NULL;
#endif
	if (size <= ASYMQ_MAX_BYTES - arena->bytes)
		place = arena->lasts ? asymq_alloc_lasting(arena, size) : asymq_alloc_small(arena, size);
	if (place)
		arena->bytes += size;
	return place;
}

/* Of a chunk, the last place is used again at once, and the others when all are free. */
void asymq_host_free(void *place, size_t size)
{
	struct asymq_small *small = (struct asymq_small *)place - 1;
	struct asymq_chunk *chunk;

	/* Nothing is freed where packets pass: the arena has it until its end. */
	if (asymq_in_packet_path() || !asymq_arena)
		return;
	asymq_arena->bytes -= size;
	hlist_for_each_entry(chunk, &asymq_arena->chunks, list) {
		if (place < (void *)chunk || place >= (void *)chunk + chunk->size)
			continue;
		chunk->live--;
		if ((void *)chunk + chunk->used == place + ALIGN(size, 16))
			chunk->used -= ALIGN(size, 16);
		if (chunk->live)
			return;
		hlist_del(&chunk->list);
		asymq_lives(-1);
		asymq_weighs(-asymq_taken(chunk, chunk->size));
		kvfree(chunk);
		return;
	}
	hlist_del(&small->list);
	asymq_lives(-1);
	asymq_weighs(-asymq_taken(small, 0));
	kfree(small);
}

/*
 * Rust reads Ethernet. A tag that the device will insert stands in the frame, and a device without
 * Ethernet headers, or a packet that has come in and lost its own, gets one of zeros. What lies in
 * one piece is shown where it lies.
 */
void asymq_frame(struct sk_buff *skb, bool ingress, u8 *scratch, size_t capacity,
		 struct asymq_frame *frame)
{
	bool ethernet = !ingress && skb->dev && skb->dev->type == ARPHRD_ETHER;
	unsigned int header = 0, from = 0, copy;
	__be16 *type = (__be16 *)(scratch + 2 * ETH_ALEN);

	frame->start.place = scratch;
	frame->start.len = 0;
	frame->wire_len = skb->len;
	frame->added = 0;
	frame->segment = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : 0;
	frame->trusted = asymq_is_trusted(skb);
	if (ethernet && !skb_vlan_tag_present(skb)) {
		if (skb_headlen(skb) >= min_t(unsigned int, skb->len, capacity)) {
			frame->start.place = skb->data;
			frame->start.len = min_t(unsigned int, skb_headlen(skb), capacity);
			return;
		}
	} else {
		if (ethernet) {
			from = 2 * ETH_ALEN;
			if (skb_copy_bits(skb, 0, scratch, from))
				return;
		} else {
			from = max(skb_network_offset(skb), 0);
			memset(scratch, 0, 2 * ETH_ALEN);
		}
		if (skb_vlan_tag_present(skb)) {
			*type++ = skb->vlan_proto;
			*type++ = htons(skb_vlan_tag_get(skb));
		}
		if (!ethernet)
			*type++ = skb->protocol;
		header = (u8 *)type - scratch;
		if (from > skb->len)
			return;
		frame->wire_len = skb->len - from + header;
		frame->added = ingress || header < from ? 0 : header - from;
	}
	copy = min_t(unsigned int, skb->len - from, capacity - header);
	if (skb_copy_bits(skb, from, scratch + header, copy))
		return;
	frame->start.len = header + copy;
}

/* Not on a stack, which is small. */
struct asymq_scratch {
	struct asymq_frame frame;
	u8 bytes[ASYMQ_PREFIX] __aligned(8);
};

static DEFINE_PER_CPU(struct asymq_scratch, asymq_packet_scratch);
static struct asymq_scratch asymq_build_scratch;

static noinline const struct asymq_frame *asymq_frame_anew(const struct asymq_sched *q, struct sk_buff *skb)
{
	struct asymq_scratch *scratch = asymq_in_packet_path() ? this_cpu_ptr(&asymq_packet_scratch)
								: &asymq_build_scratch;

	asymq_frame(skb, false, scratch->bytes, sizeof(scratch->bytes), &scratch->frame);
	scratch->frame.nat = q && q->nat;
	return &scratch->frame;
}

/* The frame stays as it is until the next call. */
const struct asymq_frame *asymq_host_frame(struct sk_buff *skb)
{
	const struct asymq_sched *q = asymq_cb(skb)->owner;

	/* Most are asked for when they arrive. */
	return likely(q && q->arriving == skb) ? &q->frame : asymq_frame_anew(q, skb);
}

bool asymq_host_mark(struct sk_buff *skb)
{
	return INET_ECN_set_ce(skb);
}

#ifdef ASYMQ_TEST
/* Golden traces and the like may panic: they are in no delivered module. */
void __noreturn asymq_something_can_panic(const char *file, size_t len, u32 line)
{
	pr_err("asymq: a panic at %.*s:%u\n", (int)min_t(size_t, len, 200), file, line);
	BUG();
}

/* A packet of these bytes on an Ethernet device; what is beyond `split` lies in pages of its own. */
struct sk_buff *asymq_host_test_packet(const u8 *bytes, size_t len, size_t split)
{
	static struct net_device *device;
	size_t head = min(len, split);
	struct sk_buff *skb;
	int err;

	if (!device) {
		/* Nothing but its type is ever read. */
		device = kzalloc(sizeof(*device), GFP_KERNEL);
		if (!device)
			return NULL;
		device->type = ARPHRD_ETHER;
	}
	skb = alloc_skb_with_frags(head, len - head, 0, &err, GFP_KERNEL);
	if (!skb)
		return NULL;
	skb_put(skb, head);
	skb->data_len = len - head;
	skb->len += len - head;
	skb_store_bits(skb, 0, bytes, len);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	memcpy(&skb->protocol, bytes + 2 * ETH_ALEN, sizeof(skb->protocol));
	skb->dev = device;
	return skb;
}

void asymq_host_test_copy(struct sk_buff *skb, u8 *to, size_t len)
{
	if (skb_copy_bits(skb, 0, to, len))
		memset(to, 0, len);
}

void asymq_host_test_free(struct sk_buff *skb)
{
	kfree_skb(skb);
}
#endif
