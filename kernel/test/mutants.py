"""Defects of the C half, each of which a named check must catch: NAME, FILE, what stands there, what stands there instead,
the check, and a word of what it then says. `scripts/kernel-mutants` applies each alone."""

import sys

A, O = "accounts", "observer_leaves"
P, Q, W, H, V = "packets.c", "qdisc.c", "observer.c", "host.c", "values.c"
MUTANTS = [
    ("reset-leaks", P, "__skb_queue_purge(&q->waiting);", "__skb_queue_head_init(&q->waiting);", A, "slab"),
    ("reset-forgets-count", P, "asymq_count(&q->flushed, skb);", ";", A, "sums"),
    ("enqueue-untold", P, "\tasymq_tell_parents(q);\n\treturn ret;", "\treturn ret;", A, ""),
    ("dequeue-untold", P, "\t\tasymq_tell_parents(q);\n\t\tsch->q.qlen -= !!skb;", "\t\tsch->q.qlen -= !!skb;", A, ""),
    ("change-untold", Q, "if (packets != sch->q.qlen)", "if (0)", A, "ancestors"),
    ("told-unless-empty", P, "if (likely(!untold.packets))", "if (!untold.packets || !q->sch->q.qlen)", A, ""),
    ("aggregate-leaks", P, "consume_skb(skb);", ";", A, "slab"),
    ("aggregate-untold", P, "qdisc_tree_reduce_backlog(sch, packets - (int)sch->q.qlen, bytes - (int)sch->qstats.backlog);", ";", A, "ancestors"),
    ("segments-without-length", P, "qdisc_skb_cb(segs)->pkt_len = segs->len;", "qdisc_skb_cb(segs)->pkt_len = 0;", A, ""),
    ("drops-uncounted", P, "qdisc_qstats_drop(q->sch);", ";", A, "tc counts as dropped"),
    ("dropped-is-success", P, "__NET_XMIT_STOLEN : NET_XMIT_DROP;", "__NET_XMIT_STOLEN : NET_XMIT_SUCCESS;", A, "told to its sender"),
    ("filtered-is-drop", P, "return filtered ? NET_XMIT_SUCCESS | __NET_XMIT_STOLEN", "return filtered ? NET_XMIT_DROP", A, "verdict"),
    ("taken-is-drop", P, "if (!gone)\n\t\treturn NET_XMIT_SUCCESS;", "if (!gone)\n\t\treturn NET_XMIT_DROP;", A, ""),
    ("counters-lost-at-change", Q, "if (q->before)\n\t\tasymq_take_over", "if (0)\n\t\tasymq_take_over", A, "counters"),
    ("counters-lost-after-fault", Q, "if (q->before)\n\t\tasymq_take_over", "if (q->instance)\n\t\tasymq_take_over", A, "counters"),
    ("counters-unsettled-after-fault", P, "u64 learnt = asymq_settle(q->before);", "u64 learnt = 0;", A, "wait in Rust"),
    ("change-takes-peeked", Q, "\t__skb_queue_head_init(&waiting);", "\tsch->q.qlen = skb_queue_len(&q->waiting);\n\t__skb_queue_head_init(&waiting);", A, ""),
    ("qlen-not-raised", P, "\tq->sch->q.qlen++;\n", "", A, "sums"),
    ("qlen-lowered-twice", P, "\tq->sch->q.qlen--;\n", "\tq->sch->q.qlen -= 2;\n", A, "sums"),
    ("backlog-not-lowered", P, "\tqdisc_qstats_backlog_dec(q->sch, skb);\n\treturn true;", "\treturn true;", A, "sums"),
    ("no-owner-mark", P, "if (asymq_cb(skb)->owner != q) {", "if (0) {", A, ""),
    ("lost-unseen", P, "if (next == U64_MAX && !skb_queue_empty(&q->waiting))", "if (0)", A, ""),
    ("gone-leak-at-dequeue", P, "sch->q.qlen -= !!skb;\n\t\tasymq_free_gone(gone);", "sch->q.qlen -= !!skb;", A, "slab"),
    ("gone-leak-at-change", Q, "\tasymq_free_gone(gone);\n", "", A, "slab"),
    ("sent-uncounted", P, "qdisc_bstats_update(sch, skb);", ";", A, "sums"),
    ("arrived-uncounted", P, "\tasymq_count(&q->arrived, skb);\n\tasymq_learn", "\tasymq_learn", A, "sums"),
    ("fallback-sent-uncounted", P, "asymq_count(&q->fallback_sent, skb);", ";", A, "Rust sent"),
    ("fallback-without-limit", P, "skb_queue_len(&q->waiting) > q->limit", "0", A, "limit"),
    ("fallback-without-shaper", P, "if (q->rate) {", "if (0) {", "fault_and_recovery", "kbit/s"),
    ("no-wake-up", P, "qdisc_watchdog_schedule_ns(&q->watchdog, max(next, now + 1));", ";", A, "stranded"),
    ("no-watchdog-cancel", P, "\tqdisc_watchdog_cancel(&q->watchdog);\n", "", A, "asymq_destroy"),
    ("arena-leaks-at-change", Q, "\tasymq_arena_free(&old_arena);\n", "", A, "allocations"),
    ("arena-leaks-at-end", Q, "\tasymq_arena_free(&q->arena);\n", "", A, "allocations"),
    ("no-lock-at-enqueue", P, "\tspin_lock(&q->lock);\n\tq->to_free = to_free;", "\tspin_lock(&q->lock);\n\tspin_unlock(&q->lock);\n\tq->to_free = to_free;", A, "the kernel reports"),
    ("no-lock-in-hook", P, "\tspin_lock(&q->lock);\n\tq->reverse.packets++;", "\tq->reverse.packets++;", "own_reverse_only", "the kernel reports"),
    ("no-synchronize", W, "\t/* Who is in the hook may still use the state. */\n\tsynchronize_net();\n", "", O, "no more"),
    ("flows-learn-nothing", W, "\tWRITE_ONCE(place->hash, hash);\n", "", "own_reverse_only", "the leaves saw"),
    ("all-see-all", W, "WRITE_ONCE(device->only, device->count == 1 ? q : NULL);", "WRITE_ONCE(device->only, q);", "own_reverse_only", "the leaves saw"),
    ("all-changes-are-rates", V, "asymq_is_of_line(type) ? NLA_HDRLEN : step", "NLA_HDRLEN", "live_change", "allocations where rates change"),
    ("version-unread", V, "nla_get_u32(version) != ASYMQ_VERSION", "0", "without_the_plugin", "another version"),
    ("last-is-taken-for-none", P, "\t\tsch->q.qlen += !!skb;\n", "", "siblings", ""),
    ("displaced-is-taken-for-none", P, "ret == NET_XMIT_SUCCESS && q->sch->q.qlen == 1)", "0)", "siblings", "stranded"),
    ("bypass-at-an-ifb", W, " && !q->ifb;", ";", "bypass", "at an IFB"),
    ("bypass-unseen-by-followers", W, "\tlist_add_rcu(&q->followers, &asymq_followers);\n\tasymq_set_all_bypasses();\n", "\tlist_add_rcu(&q->followers, &asymq_followers);\n", "bypass", "learnt from"),
    ("bypass-of-any-discipline", Q, "asymq_allow_bypass(q, built->bypass);", "asymq_allow_bypass(q, true);", "bypass", "packets pass a shaper"),
    ("deep-frame", P, "\tq->arriving = skb;", "\tvolatile u8 deep[6000];\n\n\tdeep[now % 6000] = 1;\n\tq->arriving = skb;", "gate", "a frame of 6"),
    ("deep-chain", W, "\tstruct asymq_sched *q = asymq_owner_of(device, skb);\n", "\tstruct asymq_sched *q = asymq_owner_of(device, skb);\n\tvolatile u8 deep[200];\n\n\tdeep[skb->len % 200] = 1;\n", "gate", "chain of packets"),
    ("deep-building", Q, "\t};\n\n\tget_random", "\t};\n\tvolatile u8 deep[1400];\n\n\tdeep[setup.now % 1400] = 1;\n\tget_random", "gate", "chain of building"),
]
# Two lines of one defect.
ALSO = {"last-is-taken-for-none": [(P, "\t\tsch->q.qlen -= !!skb;\n", "")],
        "no-watchdog-cancel": [(Q, "\tqdisc_watchdog_cancel(&q->watchdog);\n", "")],
        "no-lock-in-hook": [(P, "\tspin_unlock(&q->lock);\n}\n\nvoid asymq_show_departure", "}\n\nvoid asymq_show_departure")],
        "no-lock-at-enqueue": [(P, "\tasymq_examine(q);\n\tspin_unlock(&q->lock);\n\tif (!gone)", "\tasymq_examine(q);\n\tif (!gone)")]}


def apply(name, folder):
    """Applies one to a copy of kernel/module."""
    file, old, new = next((file, old, new) for known, file, old, new, *_ in MUTANTS if known == name)
    for file, old, new in [(file, old, new), *ALSO.get(name, [])]:
        path = f"{folder}/{file}"
        with open(path) as source:
            text = source.read()
        if text.count(old) != 1:
            sys.exit(f"mutants: {name}: {file} has {text.count(old)} times, and not once: {old}")
        with open(path, "w") as source:
            source.write(text.replace(old, new))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        apply(*sys.argv[1:])
    else:
        for name, _, _, _, check, says in MUTANTS:
            if check:
                print(f"{name}\t{check}\t{says}")
