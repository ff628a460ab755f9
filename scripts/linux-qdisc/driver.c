/* Sends the packets of a trace through one of Linux's qdiscs and a link, and reports the fate of each packet.
 *
 * The first line contains settings as name=value. Then comes one line per packet:
 *   nanoseconds flow length source destination tos kind acknowledgement flags tsval sackstart sackend
 * kind is a (pure ACK) or d (other packets). A timestamp or SACK range of 0 is absent. */
#include "kernel.h"
#ifdef QDISC_codel
#include "codel.c"
#define ENQUEUE codel_qdisc_enqueue
#define DEQUEUE codel_qdisc_dequeue
#elif defined(QDISC_fq_codel)
#include "fq_codel.c"
#define ENQUEUE fq_codel_enqueue
#define DEQUEUE fq_codel_dequeue
#elif defined(QDISC_dualpi2)
#include "dualpi2.c"
#define ENQUEUE dualpi2_qdisc_enqueue
#define DEQUEUE dualpi2_qdisc_dequeue
#else
#ifdef QDISC_cake_longest
#define QDISC_cake
#define LONGEST_QUEUE(q, qq)                                                     \
	do {                                                                     \
		u32 most = 0;                                                    \
		for (u32 i = 0; i < q->tin_cnt * CAKE_QUEUES; i++) {             \
			u32 bytes = q->tins[i / CAKE_QUEUES].backlogs[i % CAKE_QUEUES]; \
			if (bytes > most) {                                      \
				most = bytes;                                    \
				qq.t = i / CAKE_QUEUES;                          \
				qq.b = i % CAKE_QUEUES;                          \
			}                                                        \
		}                                                                \
	} while (0)
#include "cake_longest.c"
#else
#include "cake.c"
#endif
#define ENQUEUE cake_enqueue
#define DEQUEUE cake_dequeue
#endif

static void leaves(struct sk_buff *skb, const char *how)
{
	printf("%lld %s #%u%s\n", (long long)now_ns, how, skb->number, skb->ecn == 3 ? " ce" : "");
	free(skb);
}

static char settings[512];
static long long setting(const char *name, long long otherwise)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(settings, key);
	return at ? atoll(at + strlen(key)) : otherwise;
}

#ifdef QDISC_cake
static void configure(struct Qdisc *sch)
{
	struct cake_sched_data *q = calloc(1, sizeof(*q));

	sch->data = q;
	sch->limit = 10240;
	q->tin_mode = setting("diffserv", CAKE_DIFFSERV_DIFFSERV3);
	q->flow_mode = setting("isolation", CAKE_FLOW_TRIPLE);
	q->rate_bps = setting("link", 0) / 8;
	q->interval = setting("rtt", 100000);
	q->target = q->interval / 20;
	q->ack_filter = setting("ack-filter", 0);
	q->buffer_config_limit = setting("memlimit", 0);
	quantum_div[0] = ~0;
	for (int i = 1; i <= CAKE_QUEUES; i++)
		quantum_div[i] = 65535 / i;
	q->tins = calloc(CAKE_MAX_TINS, sizeof(*q->tins));
	for (int i = 0; i < CAKE_MAX_TINS; i++) {
		struct cake_tin_data *b = q->tins + i;

		INIT_LIST_HEAD(&b->new_flows);
		INIT_LIST_HEAD(&b->old_flows);
		INIT_LIST_HEAD(&b->decaying_flows);
		for (int j = 0; j < CAKE_QUEUES; j++) {
			u32 k = j * CAKE_MAX_TINS + i;

			INIT_LIST_HEAD(&b->flows[j].flowchain);
			cobalt_vars_init(&b->flows[j].cvars);
			q->overflow_heap[k].t = i;
			q->overflow_heap[k].b = j;
			b->overflow_idx[j] = k;
		}
	}
	cake_reconfigure(sch);
}
#elif defined(QDISC_dualpi2)
static void configure(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = calloc(1, sizeof(*q));

	sch->data = q;
	q->sch = sch;
	q->l_queue = calloc(1, sizeof(*q->l_queue));
	dualpi2_reset_default(sch);
	sch->limit = setting("limit", sch->limit);
	q->pi2_target = setting("target", 15000) * NSEC_PER_USEC;
	q->pi2_tupdate = setting("tupdate", 16000) * NSEC_PER_USEC;
	q->pi2_alpha = dualpi2_scale_alpha_beta(setting("alpha", 41));
	q->pi2_beta = dualpi2_scale_alpha_beta(setting("beta", 819));
	q->step_thresh = setting("step_thresh", 1000) * NSEC_PER_USEC;
	q->coupling_factor = setting("coupling_factor", 2);
	q->ecn_mask = setting("any_ect", 0) ? TC_DUALPI2_ECN_MASK_ANY_ECT : q->ecn_mask;
	q->drop_overload = setting("drop_on_overload", 1);
	q->drop_early = setting("drop_enqueue", 0);
	dualpi2_calculate_c_protection(sch, q, setting("classic_protection", 10));
}

/* The timer starts with the first packet. It expires before packets that arrive at that time. */
static void run_timer(struct Qdisc *sch, long long until)
{
	struct dualpi2_sched_data *q = sch->data;
	static long long next = -1;

	if (next < 0)
		next = until + q->pi2_tupdate;
	for (; next <= until; next += q->pi2_tupdate) {
		now_ns = next;
		q->pi2_prob = calculate_probability(sch);
	}
}
#else
static void configure_codel(struct codel_params *p)
{
	codel_params_init(p);
	p->mtu = 1514;
	p->target = setting("target", 5000) * NSEC_PER_USEC >> CODEL_SHIFT;
	p->interval = setting("interval", 100000) * NSEC_PER_USEC >> CODEL_SHIFT;
	p->ecn = setting("ecn", 0);
	if (setting("ce_threshold", 0))
		p->ce_threshold = setting("ce_threshold", 0) * NSEC_PER_USEC >> CODEL_SHIFT;
}

static void configure(struct Qdisc *sch)
{
#ifdef QDISC_codel
	struct codel_sched_data *q = calloc(1, sizeof(*q));

	sch->limit = setting("limit", DEFAULT_CODEL_LIMIT);
	configure_codel(&q->params);
#else
	struct fq_codel_sched_data *q = calloc(1, sizeof(*q));

	sch->limit = setting("limit", 10240);
	q->flows_cnt = 1024;
	q->memory_limit = setting("memory_limit", 32 << 20);
	q->drop_batch_size = setting("drop_batch", 64);
	q->quantum = setting("quantum", 1514);
	INIT_LIST_HEAD(&q->new_flows);
	INIT_LIST_HEAD(&q->old_flows);
	configure_codel(&q->cparams);
	q->flows = calloc(q->flows_cnt, sizeof(*q->flows));
	q->backlogs = calloc(q->flows_cnt, sizeof(*q->backlogs));
	for (u32 i = 0; i < q->flows_cnt; i++)
		INIT_LIST_HEAD(&q->flows[i].flowchain);
#endif
	sch->data = q;
}
#endif

#ifndef QDISC_dualpi2
static void run_timer(struct Qdisc *sch, long long until) {}
#endif

/* Writes an IPv4 header and, for an ACK, a TCP header with the requested options. */
static void write_headers(struct sk_buff *skb, u8 tos, char kind, u32 ack, u32 flags, u32 tsval,
			  u32 sack_start, u32 sack_end)
{
	struct iphdr *ip = (void *)skb->data;
	struct tcphdr *tcp = (void *)(skb->data + 20);
	unsigned char *option = skb->data + 40;

	ip->version = 4;
	ip->ihl = 5;
	ip->tos = tos;
	ip->protocol = kind == 'a' ? IPPROTO_TCP : IPPROTO_UDP;
	ip->saddr = skb->src;
	ip->daddr = skb->dst;
	skb->data_len = 40;
	ip->tot_len = htons(skb->len);
	if (kind != 'a')
		return;
	tcp->source = tcp->dest = htons(skb->hash);
	tcp->ack_seq = htonl(ack);
	if (tsval) {
		u32 words[3] = { htonl(0x0101080a), htonl(tsval), htonl(1) };

		memcpy(option, words, 12);
		option += 12;
	}
	if (sack_end) {
		u32 words[3] = { htonl(0x0101050a), htonl(sack_start), htonl(sack_end) };

		memcpy(option, words, 12);
		option += 12;
	}
	skb->data_len = option - skb->data;
	ip->tot_len = htons(skb->data_len);
	tcp->doff = (skb->data_len - 20) / 4;
	((unsigned char *)tcp)[13] = flags;
}

int main(void)
{
	static struct Qdisc sch;
	struct sk_buff *to_free = NULL;
	long long at, free_at = 0, link, passed;
	unsigned flow, len, src, dst, tos, ack, flags, tsval, sack_start, sack_end, number = 0;
	char kind;
	bool more = true;

	settings[0] = ' ';
	if (!fgets(settings + 1, sizeof(settings) - 1, stdin))
		return 1;
	random_state = 1;
	link = setting("link", 1000000);
	configure(&sch);
	while (more) {
		more = scanf("%lld %u %u %u %u %u %c %u %u %u %u %u", &at, &flow, &len, &src, &dst, &tos,
			     &kind, &ack, &flags, &tsval, &sack_start, &sack_end) == 12;
		/* Sends the packets whose transmission can start before this arrival. */
		for (passed = more ? at : INT64_MAX; sch.q.qlen && free_at <= passed;) {
			struct sk_buff *skb;

			run_timer(&sch, free_at);
			now_ns = free_at;
			skb = DEQUEUE(&sch);
			if (!skb)
				break;
			free_at += (skb->len * 8000000000LL + link - 1) / link;
			leaves(skb, "sent");
#ifdef QDISC_dualpi2
			/* A device dequeues until the queue is empty. The empty queue resets the credit. */
			if (!sch.q.qlen)
				DEQUEUE(&sch);
#endif
		}
		if (!more)
			break;
		if (!sch.q.qlen && free_at < at)
			free_at = at;
		run_timer(&sch, at);
		now_ns = at;
		struct sk_buff *skb = calloc(1, sizeof(*skb));
		skb->number = number++;
		skb->len = skb->truesize = skb->cb.pkt_len = len;
		skb->src = src;
		skb->dst = dst;
		skb->hash = flow;
#ifdef QDISC_fq_codel
		skb->hash = flow % 1024 << 22;
#endif
		skb->l4_hash = true;
		skb->ecn = tos & 3;
		write_headers(skb, tos, kind, ack, flags, tsval, sack_start, sack_end);
		ENQUEUE(skb, &sch, &to_free);
	}
	return 0;
}
