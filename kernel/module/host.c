// SPDX-License-Identifier: MIT OR GPL-2.0
/* Functions that Rust calls: memory while an instance is built, and access to packets as frames. */

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

/* Maximum memory of an instance, because any user can create instances in a user namespace. */
#define ASYMQ_MAX_BYTES (64UL << 20)

/* Held while an instance is built, by a task that may sleep. */
DEFINE_MUTEX(asymq_building);
static struct asymq_arena *asymq_arena;

#ifdef ASYMQ_TEST
static int fail_alloc;
module_param(fail_alloc, int, 0644);
MODULE_PARM_DESC(fail_alloc, "number of the allocation that fails, counted from 1; 0 for none");
static unsigned int allocations;
module_param(allocations, uint, 0644);
MODULE_PARM_DESC(allocations, "allocations so far");
atomic_t asymq_alive = ATOMIC_INIT(0);
static int alive_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%d\n", atomic_read(&asymq_alive));
}

static const struct kernel_param_ops alive_ops = { .get = alive_get };
module_param_cb(alive, &alive_ops, NULL, 0444);
MODULE_PARM_DESC(alive, "allocations that are not freed");
static atomic_long_t taken = ATOMIC_LONG_INIT(0);
static int taken_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%ld\n", atomic_long_read(&taken));
}

static const struct kernel_param_ops taken_ops = { .get = taken_get };
module_param_cb(taken, &taken_ops, NULL, 0444);
MODULE_PARM_DESC(taken, "bytes of memory of all instances");
#define asymq_weighs(difference) atomic_long_add(difference, &taken)
#define asymq_must_be_in(place, table) \
	WARN_ONCE((place) < (table) || (place) >= (table) + ARRAY_SIZE(table), "asymq: beyond a table")
#define asymq_must_be_within(condition) WARN_ONCE(!(condition), "asymq: a frame is longer than its memory")
#else
#define asymq_must_be_within(condition) do { } while (0)
#define asymq_must_be_in(place, table) do { } while (0)
#define asymq_weighs(difference) do { } while (0)
#endif

/* The packet path runs with bottom halves disabled; an instance is built with them enabled. */
static bool asymq_in_packet_path(void)
{
	return !in_task() || softirq_count();
}

/*
 * An instance's lasting allocations are in one chunk of whole pages, because sizes in powers of two would waste a third.
 * An earlier instance with the same options determines the chunk's size. Without an earlier one, the first chunks have
 * the sizes of the first allocations. Temporary allocations (the parsed options) are separate.
 */
struct asymq_known {
	u32 key;	/* hash of the options */
	size_t bytes;	/* total of the lasting allocations */
};

/* Entry for a key; a later key may replace it. */
static struct asymq_known *asymq_known_at(u32 key)
{
	static struct asymq_known known[16];
	struct asymq_known *place = &known[key % ARRAY_SIZE(known)];

	asymq_must_be_in(place, known);
	return place;
}

/* Header of a separate allocation. */
struct asymq_small {
	struct hlist_node list;
} __aligned(16);

/* Header of a chunk. */
struct asymq_chunk {
	struct hlist_node list;
	size_t size;
	size_t used;
	unsigned int live;	/* number of allocations in use */
} __aligned(16);

#ifdef ASYMQ_TEST
/* Bytes of kernel memory that an allocation occupies. */
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

/* The memory of a chunk's last allocation can be reused at once, its other memory only when the chunk is empty. */
void asymq_host_free(void *place, size_t size)
{
	struct asymq_small *small = (struct asymq_small *)place - 1;
	struct asymq_chunk *chunk;

	/* The packet path frees no memory: it stays in the arena. */
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
 * Rust reads Ethernet frames. A packet without an Ethernet header gets one whose addresses are zero. A tag that the
 * device will insert is omitted, because Rust does not read it. A linear packet that has an Ethernet header is not copied.
 */
void asymq_frame(struct sk_buff *skb, bool ingress, u8 *scratch, size_t capacity,
		 struct asymq_frame *frame)
{
	bool ethernet = !ingress && asymq_has_ethernet(skb);
	unsigned int from = ethernet ? 0 : max(skb_network_offset(skb), 0);
	unsigned int header = ethernet ? 0 : ETH_HLEN, copy;
	/* Bytes of the link header to charge; at ingress, the header is before the packet. */
	unsigned int link = ingress ? asymq_pulled_header(skb) : from;

	frame->start.place = scratch;
	frame->start.len = 0;
	frame->wire_len = skb->len;
	frame->added = header > link ? header - link : 0;
	frame->segment = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : 0;
	frame->trusted = asymq_is_trusted(skb);
	if (from > skb->len)
		return;
	frame->wire_len += header - from;
	copy = min_t(unsigned int, skb->len - from, capacity - header);
	if (ethernet && skb_headlen(skb) >= copy) {
		frame->start.place = skb->data;
	} else {
		memset(scratch, 0, 2 * ETH_ALEN);
		memcpy(scratch + 2 * ETH_ALEN, &skb->protocol, sizeof(skb->protocol));
		if (skb_copy_bits(skb, from, scratch + header, copy))
			return;
	}
	frame->start.len = header + copy;
	asymq_must_be_within(frame->start.place != scratch || frame->start.len <= capacity);
}

/* Too large for the stack. */
struct asymq_scratch {
	struct asymq_frame frame;
	u8 bytes[ASYMQ_PREFIX] __aligned(8);
#ifdef ASYMQ_TEST
	u8 guard[64];
#endif
};

static DEFINE_PER_CPU(struct asymq_scratch, asymq_packet_scratch);
static struct asymq_scratch asymq_build_scratch;

static noinline const struct asymq_frame *asymq_frame_anew(const struct asymq_sched *q, struct sk_buff *skb)
{
	struct asymq_scratch *scratch = asymq_in_packet_path() ? this_cpu_ptr(&asymq_packet_scratch)
								: &asymq_build_scratch;

	asymq_frame(skb, false, scratch->bytes, sizeof(scratch->bytes), &scratch->frame);
	asymq_must_fit(scratch);
	scratch->frame.nat = q && q->nat;
	return &scratch->frame;
}

/* The frame is valid until the next call. */
const struct asymq_frame *asymq_host_frame(struct sk_buff *skb)
{
	const struct asymq_sched *q = asymq_cb(skb)->owner;

	/* Most calls are for the arriving packet. */
	return likely(q && q->arriving == skb) ? &q->frame : asymq_frame_anew(q, skb);
}

/* If the packet contains a VLAN tag, the network header is the tag; INET_ECN_set_ce() would overwrite the tag. */
bool asymq_host_mark(struct sk_buff *skb)
{
	return !eth_type_vlan(skb->protocol) && INET_ECN_set_ce(skb);
}

#ifdef ASYMQ_TEST
/* Only the self-test can panic, and the delivered module does not contain the self-test. */
void __noreturn asymq_something_can_panic(const char *file, size_t len, u32 line)
{
	pr_err("asymq: a panic at %.*s:%u\n", (int)min_t(size_t, len, 200), file, line);
	BUG();
}

/* Creates a packet of these bytes on an Ethernet device. Bytes from `split` on are in pages. */
struct sk_buff *asymq_host_test_packet(const u8 *bytes, size_t len, size_t split)
{
	static struct net_device *device;
	size_t head = min(len, split);
	struct sk_buff *skb;
	int err;

	if (!device) {
		/* Only the type of this device is read. */
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
