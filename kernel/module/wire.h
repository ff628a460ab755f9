/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What module and tc say to each other; included by both. Numbers here are an ABI: none moves, new ones are added. */
#ifndef ASYMQ_WIRE_H
#define ASYMQ_WIRE_H

#include <linux/types.h>
#include "parameters.h"

/* The version of all this, in TCA_ASYMQ_VERSION: another one where a number changes its meaning. */
#define ASYMQ_VERSION 1

/*
 * TCA_OPTIONS has VERSION, and by parameters.h a discipline, its parts and all their values in force; what of it a user gave is in
 * GIVEN, by the same numbers. Without a discipline it changes some values and leaves the others.
 */
enum {
	TCA_ASYMQ_UNSPEC,
	TCA_ASYMQ_WORDS,	/* text, before there were numbers; refused */
	/* From 2 on: parameters.h. */
};

/* A limit is in packets, or in bytes with this bit. */
#define ASYMQ_BYTES (1ULL << 63)
/* No bound, where one need not be. */
#define ASYMQ_NONE (~0ULL)

/* TCA_STATS_APP has ASYMQ_STATS_VERSION and lists of numbers, each a u64, and after a fault ASYMQ_STATS_FAILED, a u32. */

#endif
