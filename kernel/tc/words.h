/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Functions of the Rust half of tc's plugin, src/lib.rs. */
#ifndef ASYMQ_WORDS_H
#define ASYMQ_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct asymq_request {
	const char *const *words;	/* tc's, after the qdisc's name */
	size_t count;
	const void *before;		/* TCA_OPTIONS of the present qdisc; NULL without one */
	size_t before_len;
	uint32_t queue_len;		/* the device's txqueuelen */
	bool ifb;			/* the device is an IFB */
	bool numbers;			/* write text for the module's parameter `defaults`, not attributes */
};

/* Writes the payload of TCA_OPTIONS and returns its length. On an error, writes a message and returns -1. */
long asymq_read(const struct asymq_request *request, char *to, size_t room);

/* Calls `say` for each name and value of TCA_OPTIONS, in order. Returns -1 for another version. */
int asymq_show(const void *options, size_t len,
	       void (*say)(void *to, const char *name, const char *value), void *to);

/* Unit of a statistic. */
enum asymq_unit {
	ASYMQ_COUNT,
	ASYMQ_SHARE,	/* steps of 2^-30 */
	ASYMQ_TIME,	/* ns */
	ASYMQ_REAL,	/* the bits of a double */
	ASYMQ_RATE,	/* bit/s */
};

/* Calls `say` for each name, unit and value of TCA_STATS_APP; dots separate levels. Returns -1 for another version. */
int asymq_tell(const void *statistics, size_t len,
	       void (*say)(void *to, const char *name, int unit, uint64_t value), void *to);

#endif
