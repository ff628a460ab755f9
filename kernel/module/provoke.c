// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Test build: provokes one error of each kind that a debug kernel reports. The tests prove something only if the kernel
 * reports these errors. Usage: `echo KIND > /sys/module/sch_asymq/parameters/provoke`.
 */

#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "asymq.h"

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

/* Takes two locks in one order, then in the other. */
static void asymq_provoke_order(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

/* Calls a function that may sleep while a lock is held. */
static void asymq_provoke_sleep(void)
{
	spin_lock_bh(&first);
	might_sleep();
	spin_unlock_bh(&first);
}

static void asymq_provoke_freed(void)
{
	u8 *place = kmalloc(64, GFP_KERNEL);

	kfree(place);
	OPTIMIZER_HIDE_VAR(place);
	if (place)
		READ_ONCE(*place);
}

/* Leaks many objects, because an address that remains on the stack counts as a reference. */
static void asymq_provoke_leak(void)
{
	void *place;
	int i;

	for (i = 0; i < 32; i++) {
		place = kmalloc(64, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(place);
	}
}

/* Makes Rust read beyond its memory. */
static void asymq_provoke_rust(void)
{
	struct asymq_arena arena;

	asymq_arena_init(&arena);
	mutex_lock(&asymq_building);
	asymq_arena_open(&arena, 0);
	asymq_misread();
	asymq_arena_close();
	mutex_unlock(&asymq_building);
	asymq_arena_free(&arena);
}

static int asymq_provoke(const char *kind, const struct kernel_param *param)
{
	if (sysfs_streq(kind, "order"))
		asymq_provoke_order();
	else if (sysfs_streq(kind, "sleep"))
		asymq_provoke_sleep();
	else if (sysfs_streq(kind, "freed"))
		asymq_provoke_freed();
	else if (sysfs_streq(kind, "leak"))
		asymq_provoke_leak();
	else if (sysfs_streq(kind, "rust"))
		asymq_provoke_rust();
	else
		return -EINVAL;
	return 0;
}

static const struct kernel_param_ops asymq_provoke_ops = { .set = asymq_provoke };
module_param_cb(provoke, &asymq_provoke_ops, NULL, 0200);
MODULE_PARM_DESC(provoke, "error to make on purpose: order, sleep, freed, leak or rust");
