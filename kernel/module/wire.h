/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Netlink interface between the module and tc's plugin. All numbers are part of the ABI: new ones are appended. */
#ifndef ASYMQ_WIRE_H
#define ASYMQ_WIRE_H

#include <linux/types.h>
#include "parameters.h"

/* Version of the interface in TCA_ASYMQ_VERSION; incremented when a number changes its meaning. */
#define ASYMQ_VERSION 1

/*
 * TCA_OPTIONS contains VERSION, a discipline, its parts and all effective values (parameters.h). GIVEN contains the
 * values that the user gave. A message without a discipline changes only the values that it contains.
 */
enum {
	TCA_ASYMQ_UNSPEC,
	TCA_ASYMQ_WORDS,	/* text sent by older plugins; refused */
	/* Numbers from 2 on: parameters.h. */
};

/* Set if a limit is in bytes; otherwise it is in packets. */
#define ASYMQ_BYTES (1ULL << 63)
/* No limit. */
#define ASYMQ_NONE (~0ULL)

/* TCA_STATS_APP contains ASYMQ_STATS_VERSION and lists of u64; after a fault also ASYMQ_STATS_FAILED, a u32. */

#endif
