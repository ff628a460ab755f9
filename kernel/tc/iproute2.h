/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Declarations that a qdisc's plugin needs from tc: iproute2 installs no headers for them. They are unchanged from
 * iproute2 5 to 6.
 */
#ifndef ASYMQ_IPROUTE2_H
#define ASYMQ_IPROUTE2_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message,
			  const char *device);
	int (*print_qopt)(struct qdisc_util *self, FILE *out, struct rtattr *options);
	int (*print_xstats)(struct qdisc_util *self, FILE *out, struct rtattr *statistics);
	int (*parse_copt)(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message,
			  const char *device);
	int (*print_copt)(struct qdisc_util *self, FILE *out, struct rtattr *options);
	int (*has_block)(struct qdisc_util *self, struct rtattr *options, struct rtattr *block, bool *is);
};

enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
enum color_attr { COLOR_NONE = 6 };

int addattr_l(struct nlmsghdr *message, int room, int type, const void *data, int len);
struct rtattr *addattr_nest(struct nlmsghdr *message, int room, int type);
int addattr_nest_end(struct nlmsghdr *message, struct rtattr *nest);

bool is_json_context(void);
void open_json_object(const char *key);
void close_json_object(void);
int print_color_string(enum output_type type, enum color_attr color, const char *key, const char *format,
		       const char *value);
int print_color_u64(enum output_type type, enum color_attr color, const char *key, const char *format,
		    uint64_t value);
int print_color_float(enum output_type type, enum color_attr color, const char *key, const char *format,
		      double value);
void print_nl(void);

#endif
