// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * tc's plugin for asymq. It knows no discipline and no parameter: names and values travel as text, the
 * module reads them and says what is wrong.
 */

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "iproute2.h"
#include "wire.h"

#define MAX_MESSAGE 16384
#define MAX_WORD 192

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... asymq [ DISCIPLINE ] [ up RATE ] [ down RATE ] [ buffer LIMIT ] [ shaped | unshaped ]\n"
		"                 [ nat | nonat ] [ overhead N | KEYWORD... ] [ mpu N ] [ NAME VALUE ]...\n"
		"DISCIPLINE, NAME and VALUE as for `asymq gateway`: aq, sad, droptail, ...; data-share 0.8, ...\n"
		"KEYWORD as for cake: docsis, ethernet, ether-vlan, pppoe-ptm, pppoe-vcmux, atm, ptm, noatm, ...\n"
		"VALUE `default` takes back what was given. tc-asymq(8) has more.\n");
}

/* cake's words for what the link adds; together they are one value. */
static bool is_link_word(const char *word)
{
	static const char *const words[] = {
		"raw", "conservative", "ipoa-vcmux", "ipoa-llcsnap", "bridged-vcmux", "bridged-llcsnap",
		"pppoa-vcmux", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap", "pppoe-ptm", "bridged-ptm",
		"ethernet", "docsis", "ether-vlan", "via-ethernet", "atm", "ptm", "noatm",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static bool is_number(const char *word)
{
	char *end;

	strtol(word, &end, 10);
	return *word && !*end;
}

static int append(char *text, const char *word)
{
	if (strlen(text) + strlen(word) + 2 > MAX_WORD)
		return -1;
	if (*text)
		strcat(text, " ");
	strcat(text, word);
	return 0;
}

static int set(struct nlmsghdr *message, const char *name, const char *value)
{
	char text[MAX_WORD];

	if (snprintf(text, sizeof(text), "%s %s", name, value) >= (int)sizeof(text)) {
		fprintf(stderr, "asymq: %s: too long\n", name);
		return -1;
	}
	return addattr_l(message, MAX_MESSAGE, TCA_ASYMQ_SET, text, strlen(text) + 1);
}

/* A switch of two words, the first for "true". */
struct toggle {
	const char *name, *off;
};

static const struct toggle toggles[] = { { "shaped", "unshaped" }, { "nat", "nonat" } };

static const struct toggle *toggle_of(const char *word)
{
	for (size_t i = 0; i < sizeof(toggles) / sizeof(*toggles); i++)
		if (!strcmp(word, toggles[i].name) || !strcmp(word, toggles[i].off))
			return &toggles[i];
	return NULL;
}

/* `overhead docsis`, as `asymq gateway` writes it: the first word adds nothing. */
static bool is_filler(const char *word, const char *next)
{
	return !strcmp(word, "overhead") && next && is_link_word(next);
}

/* Names that no discipline has. */
static bool takes_value(const char *word)
{
	static const char *const names[] = { "up", "down", "buffer", "limit", "qdisc" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(word, names[i]))
			return true;
	return false;
}

/* Whether a discipline stands in front: all but words that stand alone come in pairs. */
static bool begins_with_discipline(int argc, char **argv)
{
	int paired = 0;

	for (int i = 0; i < argc; i++)
		if (!is_link_word(argv[i]) && !toggle_of(argv[i]) &&
		    !is_filler(argv[i], i + 1 < argc ? argv[i + 1] : NULL))
			paired++;
	return paired % 2;
}

static int parse(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message,
		 const char *device)
{
	struct rtattr *nest = addattr_nest(message, MAX_MESSAGE, TCA_OPTIONS | NLA_F_NESTED);
	char link[MAX_WORD] = "";
	bool first = begins_with_discipline(argc, argv);

	(void)self;
	(void)device;
	for (; argc > 0; argc--, argv++) {
		const char *word = *argv, *next = argc > 1 ? argv[1] : NULL;
		const struct toggle *toggle;
		int failed;

		if (!strcmp(word, "help")) {
			explain();
			return -1;
		}
		toggle = toggle_of(word);
		if (toggle) {
			failed = set(message, toggle->name, strcmp(word, toggle->off) ? "true" : "false");
		} else if (is_link_word(word)) {
			failed = append(link, word);
		} else if (is_filler(word, next)) {
			continue;
		} else if (first && takes_value(word)) {
			fprintf(stderr, "asymq: %s is no discipline: a value is missing; write it like up 1mbit\n", word);
			return -1;
		} else if (first) {
			failed = set(message, "qdisc", word);
			first = false;
		} else if (!next) {
			fprintf(stderr, "asymq: %s: no value; write it like data-share 0.8\n", word);
			return -1;
		} else {
			bool number = (!strcmp(word, "overhead") || !strcmp(word, "mpu")) && is_number(next);

			if (number)
				failed = append(link, word) || append(link, next);
			else
				failed = set(message, strcmp(word, "limit") ? word : "buffer", next);
			argc--;
			argv++;
		}
		if (failed)
			return -1;
	}
	if (*link && set(message, "overhead", link))
		return -1;
	addattr_nest_end(message, nest);
	return 0;
}

static int print_options(struct qdisc_util *self, FILE *out, struct rtattr *options)
{
	(void)self;
	(void)out;
	if (!options)
		return 0;
	int len = RTA_PAYLOAD(options);
	for (struct rtattr *attr = RTA_DATA(options); RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		char text[MAX_WORD + 64], *value;
		size_t size = RTA_PAYLOAD(attr);
		const struct toggle *toggle;

		if ((attr->rta_type & NLA_TYPE_MASK) != TCA_ASYMQ_SET || size >= sizeof(text))
			continue;
		memcpy(text, RTA_DATA(attr), size);
		text[size] = 0;
		value = strchr(text, ' ');
		if (!value)
			continue;
		*value++ = 0;
		/* In words that tc takes again. */
		toggle = toggle_of(text);
		if (toggle && !is_json_context())
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ",
					   *value == 't' ? toggle->name : toggle->off);
		else if ((!strcmp(text, "qdisc") || !strcmp(text, "overhead")) && !is_json_context())
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", value);
		else {
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", text);
			print_color_string(PRINT_ANY, COLOR_NONE, text, "%s ", value);
		}
	}
	return 0;
}

/* A number in its unit, for people. */
static void print_for_people(const char *name, const struct asymq_value *value)
{
	static const char *const times[] = { "ns", "us", "ms", "s" };
	static const char *const rates[] = { "bit", "kbit", "mbit", "gbit" };
	const char *const *units = value->kind == ASYMQ_TIME ? times : rates;
	char text[64];
	double number = value->value;
	int unit = 0;

	switch (value->kind) {
	case ASYMQ_SHARE:
		snprintf(text, sizeof(text), "%.4f", number / (1 << 30));
		break;
	case ASYMQ_REAL:
		memcpy(&number, &value->value, sizeof(number));
		snprintf(text, sizeof(text), "%g", number);
		break;
	case ASYMQ_TIME:
	case ASYMQ_RATE:
		for (; number >= 1000 && unit < 3; unit++)
			number /= 1000;
		snprintf(text, sizeof(text), "%.4g%s", number, units[unit]);
		break;
	default:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)value->value);
	}
	print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", name);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", text);
}

/* In base units: seconds, bit/s, fractions. */
static void print_for_programs(const char *name, const struct asymq_value *value)
{
	double number;

	switch (value->kind) {
	case ASYMQ_SHARE:
		number = (double)value->value / (1 << 30);
		break;
	case ASYMQ_TIME:
		number = value->value / 1e9;
		break;
	case ASYMQ_REAL:
		memcpy(&number, &value->value, sizeof(number));
		if (!isfinite(number))
			return;
		break;
	default:
		print_color_u64(PRINT_JSON, COLOR_NONE, name, NULL, value->value);
		return;
	}
	print_color_float(PRINT_JSON, COLOR_NONE, name, NULL, number);
}

#define MAX_LEVELS 4

/* Levels that are open. */
static char levels[MAX_LEVELS][32];
static int depth;

/* Closes levels that the name is not in, opens those that it is in; answers with its last part. */
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

static int print_statistics(struct qdisc_util *self, FILE *out, struct rtattr *statistics)
{
	(void)self;
	(void)out;
	if (!statistics)
		return 0;
	int len = RTA_PAYLOAD(statistics);
	for (struct rtattr *attr = RTA_DATA(statistics); RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		int type = attr->rta_type & NLA_TYPE_MASK;
		size_t size = RTA_PAYLOAD(attr);
		struct asymq_value *value;
		char name[64];

		if (type == TCA_ASYMQ_FAILED && size == sizeof(uint32_t)) {
			uint32_t faults;

			memcpy(&faults, RTA_DATA(attr), sizeof(faults));
			enter(strcpy(name, "failed"));
			print_color_u64(PRINT_JSON, COLOR_NONE, "failed", NULL, faults);
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s",
					   " FAILED: a FIFO until `tc qdisc change`; the kernel's log says more");
		}
		if (type != TCA_ASYMQ_VALUE || size <= sizeof(*value) || size - sizeof(*value) >= sizeof(name))
			continue;
		value = RTA_DATA(attr);
		memcpy(name, value->name, size - sizeof(*value));
		name[size - sizeof(*value)] = 0;
		if (is_json_context())
			print_for_programs(enter(name), value);
		else
			print_for_people(enter(name), value);
	}
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
