/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the Rust half of tc's plugin does, src/lib.rs. */
#ifndef ASYMQ_WORDS_H
#define ASYMQ_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct asymq_request {
	const char *const *words;	/* of tc, behind the qdisc's name */
	size_t count;
	const void *before;		/* TCA_OPTIONS of the qdisc that is changed; NULL if there is none */
	size_t before_len;
	uint32_t queue_len;		/* packets that the device's queue holds */
	bool ifb;			/* the device is one */
	bool numbers;			/* write text for the module's parameter instead of attributes */
};

/* Writes the payload of TCA_OPTIONS and answers with its length; with -1 and what is wrong, as text, instead. */
long asymq_read(const struct asymq_request *request, char *to, size_t room);

/* Says names and values that TCA_OPTIONS stands for, in their order; answers with -1 where it is of another version. */
int asymq_show(const void *options, size_t len,
	       void (*say)(void *to, const char *name, const char *value), void *to);

/* The unit of a statistic. */
enum asymq_unit {
	ASYMQ_COUNT,
	ASYMQ_SHARE,	/* steps of 2^-30 */
	ASYMQ_TIME,	/* ns */
	ASYMQ_REAL,	/* the bits of a double */
	ASYMQ_RATE,	/* bit/s */
};

/* Says names, units and values of TCA_STATS_APP; dots in names are levels. Answers with -1 where it is of another version. */
int asymq_tell(const void *statistics, size_t len,
	       void (*say)(void *to, const char *name, int unit, uint64_t value), void *to);

#endif
