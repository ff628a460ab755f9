/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Netlink interface between the module and tc's plugin. Numbers are an ABI: new ones are added at the end. */
#ifndef ASYMQ_WIRE_H
#define ASYMQ_WIRE_H

#include <linux/types.h>
#include "parameters.h"

/* Version of the interface, in TCA_ASYMQ_VERSION: changes with the meaning of a number. */
#define ASYMQ_VERSION 1

/*
 * TCA_OPTIONS has VERSION, a discipline, its parts and all values in force (parameters.h), and in GIVEN those that the user gave.
 * A message without a discipline changes the values that it has.
 */
enum {
	TCA_ASYMQ_UNSPEC,
	TCA_ASYMQ_WORDS,	/* text of older plugins; refused */
	/* 2 and above: parameters.h. */
};

/* A limit is in packets, or in bytes with this bit. */
#define ASYMQ_BYTES (1ULL << 63)
/* No limit. */
#define ASYMQ_NONE (~0ULL)

/* TCA_STATS_APP has ASYMQ_STATS_VERSION, lists of u64, and after a fault ASYMQ_STATS_FAILED, a u32. */

#endif
