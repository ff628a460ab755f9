// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * tc's plugin for asymq. This half exchanges netlink messages and prints. The Rust half (words.h) has the catalog,
 * parses words and reports errors.
 */

#include <linux/if_link.h>
#include <math.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "iproute2.h"
#include "wire.h"
#include "words.h"

#define MAX_MESSAGE 16384
#define MAX_OPTIONS 4096

static void explain(void)
{
	fputs("Usage: ... asymq [ DISCIPLINE ] [ up RATE ] [ down RATE ] [ buffer LIMIT ] [ shaped | unshaped ]\n"
	      "                 [ nat | nonat ] [ overhead N | KEYWORD... ] [ mpu N ] [ NAME VALUE ]...\n"
	      "DISCIPLINE, NAME and VALUE as for `asymq gateway`: aq, sad, droptail, ...; data-share 0.8, ...\n"
	      "KEYWORD as for cake: docsis, ethernet, ether-vlan, pppoe-ptm, pppoe-vcmux, atm, ptm, noatm, ...\n"
	      "RATE like 950kbit, auto or auto:1mbit..20mbit; LIMIT like 50p (packets) or 64kb. `up` is the rate of\n"
	      "the shaper, 95 % of the line's. NAME `default` resets an option. With `numbers` at the end, tc only\n"
	      "prints the options as a value for the module's parameter `defaults`. See tc-asymq(8).\n", stderr);
}

/* Answer of the kernel. */
struct answer {
	char bytes[32768];
	size_t len;
};

/* Sends a request to rtnetlink and stores the answer before its acknowledgement. Returns false without an answer. */
static bool ask(int type, const void *body, size_t len, struct answer *answer)
{
	static int rtnetlink = -1;
	static unsigned int sequence;
	struct {
		struct nlmsghdr header;
		char body[64];
	} request = {
		.header = {
			.nlmsg_len = NLMSG_LENGTH(len),
			.nlmsg_type = type,
			/* Without ECHO, kernels before 6.8 answer only other sockets. */
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO,
			.nlmsg_seq = ++sequence,
		},
	};
	bool found = false;

	if (rtnetlink < 0)
		rtnetlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	memcpy(request.body, body, len);
	if (rtnetlink < 0 || send(rtnetlink, &request, request.header.nlmsg_len, 0) < 0)
		return false;
	for (;;) {
		static char buffer[sizeof(answer->bytes)];
		ssize_t rest = recv(rtnetlink, buffer, sizeof(buffer), 0);
		const struct nlmsghdr *message = (const struct nlmsghdr *)buffer;

		if (rest <= 0)
			return false;
		for (; NLMSG_OK(message, rest); message = NLMSG_NEXT(message, rest)) {
			if (message->nlmsg_seq != sequence)
				continue;
			if (message->nlmsg_type == NLMSG_ERROR)
				return found;
			answer->len = message->nlmsg_len - NLMSG_HDRLEN;
			memcpy(answer->bytes, NLMSG_DATA(message), answer->len);
			found = true;
		}
	}
}

/* Returns the first attribute of a type, or NULL. */
static const struct rtattr *find(const struct rtattr *attr, int len, int type)
{
	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len))
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			return attr;
	return NULL;
}

static const struct rtattr *find_after(const struct answer *answer, size_t head, int type)
{
	return find((const struct rtattr *)(answer->bytes + NLMSG_ALIGN(head)),
		    (int)answer->len - (int)NLMSG_ALIGN(head), type);
}

static bool is_text(const struct rtattr *attr, const char *text)
{
	return attr && RTA_PAYLOAD(attr) > strlen(text) && !strcmp(RTA_DATA(attr), text);
}

/* Gets the device's txqueuelen, and determines whether the device is an IFB. */
static void ask_device(int index, struct asymq_request *request)
{
	struct ifinfomsg body = { .ifi_family = AF_UNSPEC, .ifi_index = index };
	static struct answer answer;
	const struct rtattr *attr;

	request->queue_len = 1000;
	if (!ask(RTM_GETLINK, &body, sizeof(body), &answer))
		return;
	attr = find_after(&answer, sizeof(body), IFLA_TXQLEN);
	if (attr && RTA_PAYLOAD(attr) >= sizeof(request->queue_len))
		memcpy(&request->queue_len, RTA_DATA(attr), sizeof(request->queue_len));
	attr = find_after(&answer, sizeof(body), IFLA_LINKINFO);
	if (attr)
		request->ifb = is_text(find(RTA_DATA(attr), RTA_PAYLOAD(attr), IFLA_INFO_KIND), "ifb");
}

/* Gets the options of the present qdisc, if it is asymq. */
static void ask_before(const struct tcmsg *place, struct asymq_request *request)
{
	static struct answer answer;
	const struct rtattr *options;

	if (!ask(RTM_GETQDISC, place, sizeof(*place), &answer) ||
	    !is_text(find_after(&answer, sizeof(*place), TCA_KIND), "asymq"))
		return;
	options = find_after(&answer, sizeof(*place), TCA_OPTIONS);
	if (options) {
		request->before = RTA_DATA(options);
		request->before_len = RTA_PAYLOAD(options);
	}
}

static int parse(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message,
		 const char *device)
{
	struct tcmsg place = *(struct tcmsg *)NLMSG_DATA(message);
	struct asymq_request request = { .words = (const char *const *)argv, .count = argc };
	char text[MAX_OPTIONS];
	long len;

	(void)self;
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "help")) {
			explain();
			return -1;
		}
	if (argc && !strcmp(argv[argc - 1], "numbers")) {
		request.numbers = true;
		request.count--;
	}
	place.tcm_ifindex = device && *device ? if_nametoindex(device) : 0;
	if (place.tcm_ifindex)
		ask_device(place.tcm_ifindex, &request);
	/* `add` discards the options of a previous qdisc. */
	if (place.tcm_ifindex && !request.numbers && !(message->nlmsg_flags & NLM_F_EXCL))
		ask_before(&place, &request);
	len = asymq_read(&request, text, sizeof(text));
	if (len < 0)
		fprintf(stderr, "Error: asymq: %s.\n", text);
	else if (request.numbers)
		printf("defaults=%s\n", text);
	if (len < 0 || request.numbers)
		return -1;
	return addattr_l(message, MAX_MESSAGE, TCA_OPTIONS | NLA_F_NESTED, text, len);
}

/* Converts a switch to the word that tc accepts. */
static const char *word_of(const char *name, const char *value)
{
	bool on = *value == 't';

	if (!strcmp(name, "shaped"))
		return on ? "shaped" : "unshaped";
	if (!strcmp(name, "nat"))
		return on ? "nat" : "nonat";
	return !strcmp(name, "qdisc") || !strcmp(name, "overhead") ? value : NULL;
}

static void print_option(void *to, const char *name, const char *value)
{
	const char *word = word_of(name, value);

	(void)to;
	if (word && !is_json_context()) {
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", word);
	} else {
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", name);
		print_color_string(PRINT_ANY, COLOR_NONE, name, "%s ", value);
	}
}

static int print_options(struct qdisc_util *self, FILE *out, struct rtattr *options)
{
	(void)self;
	(void)out;
	if (options && asymq_show(RTA_DATA(options), RTA_PAYLOAD(options), print_option, NULL))
		fprintf(stderr, "asymq: tc's plugin and the module have different versions; install both from one release\n");
	return 0;
}

/* Prints a number in its unit, as text. */
static void print_for_people(const char *name, int unit_of, uint64_t value)
{
	static const char *const times[] = { "ns", "us", "ms", "s" };
	static const char *const rates[] = { "bit", "kbit", "mbit", "gbit" };
	const char *const *units = unit_of == ASYMQ_TIME ? times : rates;
	char text[64];
	double number = value;
	int unit = 0;

	switch (unit_of) {
	case ASYMQ_SHARE:
		snprintf(text, sizeof(text), "%.4f", number / (1 << 30));
		break;
	case ASYMQ_REAL:
		memcpy(&number, &value, sizeof(number));
		snprintf(text, sizeof(text), "%g", number);
		break;
	case ASYMQ_TIME:
	case ASYMQ_RATE:
		for (; number >= 1000 && unit < 3; unit++)
			number /= 1000;
		snprintf(text, sizeof(text), "%.4g%s", number, units[unit]);
		break;
	default:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	}
	print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", name);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", text);
}

/* Prints a number in base units, as JSON: seconds, bit/s, fractions. */
static void print_for_programs(const char *name, int unit_of, uint64_t value)
{
	double number;

	switch (unit_of) {
	case ASYMQ_SHARE:
		number = (double)value / (1 << 30);
		break;
	case ASYMQ_TIME:
		number = value / 1e9;
		break;
	case ASYMQ_REAL:
		memcpy(&number, &value, sizeof(number));
		if (!isfinite(number))
			return;
		break;
	default:
		print_color_u64(PRINT_JSON, COLOR_NONE, name, NULL, value);
		return;
	}
	print_color_float(PRINT_JSON, COLOR_NONE, name, NULL, number);
}

#define MAX_LEVELS 4

/* Names of the open levels. */
static char levels[MAX_LEVELS][32];
static int depth;

/* Closes and opens levels for a dotted name. Returns its last part. */
static const char *enter(char *name)
{
	char *parts[MAX_LEVELS + 1], *part = name;
	int count = 0, same = 0;

	for (parts[count++] = part; count <= MAX_LEVELS && (part = strchr(part, '.')); count++) {
		*part++ = 0;
		parts[count] = part;
	}
	while (same < depth && same < count - 1 && !strcmp(levels[same], parts[same]))
		same++;
	if (!is_json_context() && (same < depth || same < count - 1) && same == 0) {
		print_nl();
		print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", count > 1 ? parts[0] : "total");
	}
	for (; depth > same; depth--)
		if (is_json_context())
			close_json_object();
	for (; depth < count - 1; depth++) {
		snprintf(levels[depth], sizeof(levels[depth]), "%s", parts[depth]);
		if (is_json_context())
			open_json_object(parts[depth]);
		else if (depth > 0)
			print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", parts[depth]);
	}
	return parts[count - 1];
}

static void print_statistic(void *to, const char *told, int unit, uint64_t value)
{
	char name[64];

	(void)to;
	snprintf(name, sizeof(name), "%s", told);
	if (is_json_context())
		print_for_programs(enter(name), unit, value);
	else if (strcmp(name, "failed"))
		print_for_people(enter(name), unit, value);
	else {
		enter(name);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s",
				   " FAILED: a FIFO until `tc qdisc change`; see the kernel's log");
	}
}

static int print_statistics(struct qdisc_util *self, FILE *out, struct rtattr *statistics)
{
	(void)self;
	(void)out;
	/* print_options() already reports a different version. */
	if (statistics)
		asymq_tell(RTA_DATA(statistics), RTA_PAYLOAD(statistics), print_statistic, NULL);
	for (; depth > 0; depth--)
		if (is_json_context())
			close_json_object();
	return 0;
}

struct qdisc_util asymq_qdisc_util = {
	.id = "asymq",
	.parse_qopt = parse,
	.print_qopt = print_options,
	.print_xstats = print_statistics,
};
