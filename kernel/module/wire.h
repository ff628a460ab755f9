/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What module and tc say to each other; included by both. */
#ifndef ASYMQ_WIRE_H
#define ASYMQ_WIRE_H

#include <linux/types.h>

/* TCA_OPTIONS has any number of SET; TCA_STATS_APP any number of VALUE, and FAILED. */
enum {
	TCA_ASYMQ_UNSPEC,
	TCA_ASYMQ_SET,		/* "name value" */
	TCA_ASYMQ_VALUE,	/* struct asymq_value */
	TCA_ASYMQ_FAILED,	/* __u32: faults since the last change; the qdisc is a FIFO meanwhile */
};

/* Kinds of numbers. */
enum {
	ASYMQ_COUNT,
	ASYMQ_SHARE,	/* steps of 2^-30 */
	ASYMQ_TIME,	/* ns */
	ASYMQ_REAL,	/* the bits of a double */
	ASYMQ_RATE,	/* bit/s */
};

struct asymq_value {
	__u64 value;
	__u8 kind;
	char name[];	/* dots are levels; no zero at its end */
} __attribute__((packed));

#endif
