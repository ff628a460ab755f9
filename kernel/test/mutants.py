"""Defects of the C half, each of which a named check must find: NAME, FILE, the original text, its replacement, the
check, and a word of its error. `scripts/kernel-mutants` applies each alone."""

import sys

A, O, C, S, R = "accounts", "observer_leaves", "observers_change", "short_change", "the kernel reports"
P, Q, W, H, V = "packets.c", "qdisc.c", "observer.c", "host.c", "values.c"
MUTANTS = [
    ("reset-leaks", P, "__skb_queue_purge(&q->waiting);", "__skb_queue_head_init(&q->waiting);", A, "slab"),
    ("reset-forgets-count", P, "asymq_count(&q->flushed, skb);", ";", A, "sums"),
    ("enqueue-unreported", P, "\tasymq_report_to_parents(q);\n\treturn ret;", "\treturn ret;", A, ""),
    ("dequeue-unreported", P, "\t\tasymq_report_to_parents(q);\n\t\tsch->q.qlen -= !!skb;", "\t\tsch->q.qlen -= !!skb;", A, ""),
    ("change-unreported", Q, "\tasymq_report_to_parents(q);\n", "\tq->unreported = (struct asymq_count) {};\n", A, "ancestors"),
    ("told-unless-empty", P, "if (likely(!unreported.packets))", "if (!unreported.packets || !q->sch->q.qlen)", A, ""),
    ("aggregate-leaks", P, "consume_skb(skb);", ";", A, "slab"),
    ("aggregate-unreported", P, "qdisc_tree_reduce_backlog(sch, packets - (int)sch->q.qlen, bytes - (int)sch->qstats.backlog);", ";", A, "ancestors"),
    ("segments-without-length", P, "qdisc_skb_cb(segs)->pkt_len = segs->len;", "qdisc_skb_cb(segs)->pkt_len = 0;", A, ""),
    ("drops-uncounted", P, "qdisc_qstats_drop(q->sch);", ";", A, "tc counts as dropped"),
    ("dropped-is-success", P, "__NET_XMIT_STOLEN : NET_XMIT_DROP;", "__NET_XMIT_STOLEN : NET_XMIT_SUCCESS;", A, "told to its sender"),
    ("filtered-is-drop", P, "return filtered ? NET_XMIT_SUCCESS | __NET_XMIT_STOLEN", "return filtered ? NET_XMIT_DROP", A, "verdict"),
    ("taken-is-drop", P, "if (!gone)\n\t\treturn NET_XMIT_SUCCESS;", "if (!gone)\n\t\treturn NET_XMIT_DROP;", A, ""),
    ("counters-lost-at-change", Q, "if (q->before)\n\t\tasymq_take_over", "if (0)\n\t\tasymq_take_over", A, "counters"),
    ("counters-lost-after-fault", Q, "if (q->before)\n\t\tasymq_take_over", "if (q->instance)\n\t\tasymq_take_over", A, "counters"),
    ("counters-unsettled-after-fault", P, "u64 learnt = asymq_settle(q->before);", "u64 learnt = 0;", A, "wait in Rust"),
    ("change-takes-peeked", Q, "\tq->next_offer = skb_peek(&q->waiting);", "\tsch->q.qlen = skb_queue_len(&q->waiting);\n\tq->next_offer = skb_peek(&q->waiting);", A, ""),
    ("qlen-not-raised", P, "\tq->sch->q.qlen++;\n", "", A, "sums"),
    ("qlen-lowered-twice", P, "\tq->sch->q.qlen--;\n", "\tq->sch->q.qlen -= 2;\n", A, "sums"),
    ("backlog-not-lowered", P, "\tqdisc_qstats_backlog_dec(q->sch, skb);\n\treturn true;", "\treturn true;", A, "sums"),
    ("no-owner-mark", P, "if (asymq_cb(skb)->owner != q || skb == q->next_offer) {", "if (0) {", A, ""),
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
    ("no-lock-in-hook", W, "\tspin_lock(&q->lock);\n\tq->reverse.packets++;", "\tq->reverse.packets++;", "own_reverse_only", "the kernel reports"),
    ("no-synchronize", W, "\t/* Packets that are in the hook may still use the qdisc and the device. */\n\tsynchronize_net();\n", "", O, "destroyed"),
    ("flows-learn-nothing", W, "\tWRITE_ONCE(place->hash, hash);\n", "", "own_reverse_only", "the leaves saw"),
    ("all-see-all", W, "WRITE_ONCE(device->only, device->count == 1 ? q : NULL);", "WRITE_ONCE(device->only, q);", "own_reverse_only", "the leaves saw"),
    ("all-changes-are-rates", V, "asymq_is_of_line(type) ? NLA_HDRLEN : step", "NLA_HDRLEN", "live_change", "allocations where rates change"),
    ("version-unread", V, "nla_get_u32(version) != ASYMQ_VERSION", "0", "without_the_plugin", "another version"),
    ("last-is-taken-for-none", P, "\t\tsch->q.qlen += !!skb;\n", "", "siblings", ""),
    ("displaced-is-taken-for-none", P, "ret == NET_XMIT_SUCCESS && q->sch->q.qlen == 1)", "0)", "siblings", "stranded"),
    ("bypass-at-an-ifb", W, " && !q->ifb;", ";", "bypass", "at an IFB"),
    ("bypass-unseen-by-followers", W, "\tlist_add_rcu(&q->followers, &q->net->followers);\n\tasymq_set_all_bypasses(q->net);\n", "\tlist_add_rcu(&q->followers, &q->net->followers);\n", "bypass", "learnt from"),
    ("one-list-for-all-namespaces", W, "net_generic(dev_net(dev), asymq_net_id)", "net_generic(&init_net, asymq_net_id)", "bypass", "another namespace"),
    ("namespaces-stay-registered", Q, "\tasymq_nets_unregister();\n}\n\nmodule_init", "}\n\nmodule_init", C, ""),
    ("bypass-of-any-discipline", Q, "asymq_allow_bypass(q, built->bypass);", "asymq_allow_bypass(q, true);", "bypass", "packets pass a shaper"),
    ("dump-without-tree-lock", Q, "\tsch_tree_lock(sch);\n\tspin_lock(&q->lock);\n\tasymq_show", "\tspin_lock_bh(&q->lock);\n\tasymq_show", C, R),
    ("dump-without-own-lock", Q, "\tsch_tree_lock(sch);\n\tspin_lock(&q->lock);\n\tasymq_show", "\tsch_tree_lock(sch);\n\tasymq_show", C, R),
    ("options-dumped-without-lock", Q, "\tspin_lock_bh(&q->lock);\n\toptions =", "\toptions =", C, R),
    ("options-dumped-with-softirqs", Q, "\tspin_lock_bh(&q->lock);\n\toptions =", "\tspin_lock(&q->lock);\n\toptions =", C, R),
    ("rates-without-tree-lock", Q, "\tsch_tree_lock(sch);\n\tspin_lock(&q->lock);\n\tnow = ktime_get_ns();\n\tif (q->instance) {", "\tspin_lock_bh(&q->lock);\n\tnow = ktime_get_ns();\n\tif (q->instance) {", S, R),
    ("rates-without-own-lock", Q, "\tsch_tree_lock(sch);\n\tspin_lock(&q->lock);\n\tnow = ktime_get_ns();\n\tif (q->instance) {", "\tsch_tree_lock(sch);\n\tnow = ktime_get_ns();\n\tif (q->instance) {", S, R),
    ("change-without-tree-lock", Q, "\tsch_tree_lock(sch);\n\tspin_lock(&q->lock);\n\tasymq_must_hold(q);", "\tspin_lock_bh(&q->lock);\n\tasymq_must_hold(q);", S, R),
    ("change-without-own-lock", Q, "\tsch_tree_lock(sch);\n\tspin_lock(&q->lock);\n\tasymq_must_hold(q);", "\tsch_tree_lock(sch);\n\tasymq_must_hold(q);", S, R),
    ("reset-with-softirqs", P, "\tspin_lock_bh(&q->lock);\n\tasymq_must_hold(q);", "\tspin_lock(&q->lock);\n\tasymq_must_hold(q);", C, R),
    ("learnt-with-softirqs", V, "\tspin_lock_bh(&q->lock);", "\tspin_lock(&q->lock);", S, R),
    ("unhook-with-softirqs", W, "\tspin_lock_bh(&q->lock);", "\tspin_lock(&q->lock);", C, R),
    ("follower-without-rcu", W, "\tlist_del_rcu(&q->followers);", "\tlist_del(&q->followers);", O, ""),
    ("device-without-rcu", W, "\t\tlist_del_rcu(&device->list);", "\t\tlist_del(&device->list);", O, ""),
    ("follower-without-grace-period", W, "\t/* Packets that are in asymq_show_followers() may still use it. */\n\tsynchronize_net();\n", "", O, "destroyed"),
    ("flows-of-a-removed-qdisc", W, "\t\t\tif (device->flows[place].q == q) {", "\t\t\tif (0) {", C, R),
    ("last-observer-is-one-of-many", W, "WRITE_ONCE(device->only, device->count == 1 ?\n\t\t   list_first_entry(&device->observers, struct asymq_sched, observers) : NULL);", "WRITE_ONCE(device->only, NULL);", C, "alone"),
    ("hook-stays", W, "\t\tnf_unregister_net_hook(dev_net(device->dev), &device->hook);\n", "", C, ""),
    ("module-not-in-use", Q, "\t.owner = THIS_MODULE,\n", "", C, ""),
    ("connection-leaks", P, "\tends[reversed] = tuple.src.u3.ip;", "\tnf_conntrack_get(skb_nfct((struct sk_buff *)skb));\n\tends[reversed] = tuple.src.u3.ip;", "connections_are_released", "namespace"),
    ("refused-aggregate-leaks", P, "\t\tasymq_refuse(q, skb);\n\t\treturn qdisc_drop(skb, sch, to_free);", "\t\tasymq_refuse(q, skb);\n\t\tqdisc_qstats_drop(sch);\n\t\treturn NET_XMIT_DROP;", "drops_are_traced", "aggregate"),
    ("refused-aggregate-leaks-slowly", P, "\t\tasymq_refuse(q, skb);\n", "\t\tasymq_refuse(q, skb);\n\t\tskb_get(skb);\n", A, "slab"),
    ("options-leak", V, "\tkfree(opts);\n", "", "nothing_left", "kmalloc"),
    ("options-leak-at-end", Q, "\tasymq_opts_free(q->opts);\n", "", "nothing_left", ""),
    ("counters-of-cpus-leak", W, "\tfree_percpu(device->counts);\n\tkvfree", "\tkvfree", "nothing_left", "Percpu"),
    ("flow-table-leaks", W, "\tkvfree(device->flows);\n", "", "nothing_left", ""),
    ("device-leaks", W, "\tkvfree(device->flows);\n\tkfree(device);", "\tkvfree(device->flows);", "nothing_left", "kmalloc"),
    ("built-leaks", Q, "\tkfree(built);\n", "", "nothing_left", "kmalloc"),
    ("drops-untraced", P, "\t\tkfree_skb(gone);", "\t\tconsume_skb(gone);", "drops_are_traced", "traced"),
    ("drops-untraced-at-reset", P, "\t__skb_queue_purge(&q->waiting);", "\tstruct sk_buff *one;\n\n\twhile ((one = __skb_dequeue(&q->waiting)))\n\t\tconsume_skb(one);", "drops_are_traced", "traced"),
    ("lone-aggregate-uncounted", P, "if (packets && sch->q.qlen == 1) {", "if (sch->q.qlen == 1) {", A, ""),
    ("lone-aggregate-of-its-segments", P, "\t\t\tbytes += whole;\n", "\t\t\tbytes += sch->qstats.backlog;\n", A, ""),
    ("rates-of-32-bits", Q, "q->rate = built->shaped ? built->link : 0;", "q->rate = built->shaped ? (u32)built->link : 0;", S, "fault"),
    ("moved-rates-of-32-bits", Q, "asymq_move(q->instance, now, built->link,", "asymq_move(q->instance, now, (u32)built->link,", S, "32 bits"),
    ("line-of-32-bits", V, "\t\t\tmemcpy(&line->up, value, sizeof(u64));", "\t\t\tline->up = *(u32 *)value;", S, "32 bits"),
    ("short-attribute", V, " || nla_len(attr) != sizeof(u64) || !top", " || !top", S, "UP as u"),
    ("version-unread-on-the-short-path", V, "version = nla_get_u32(attr) == ASYMQ_VERSION;", "version = true;", S, "another version"),
    ("version-not-needed-on-the-short-path", V, "return version && !rest;", "return !rest;", S, "version"),
    ("ranges-unread-on-the-short-path", V, "if (asymq_is_of_line(type) && !asymq_is_in_range(", "if (0 && !asymq_is_in_range(", S, "=0"),
    ("bypass-without-tree-lock", W, "\tsch_tree_lock(q->sch);\n", "", "bypass", R),
    ("options-of-a-refused-change-leak", Q, "\tasymq_opts_free(opts);\n\tasymq_arena_free(&arena);", "\tif (!err)\n\t\tasymq_opts_free(opts);\n\tasymq_arena_free(&arena);", "nothing_left", ""),
    ("size-table-ignored", P, "\t\tq->frame.charged = qdisc_pkt_len(skb);", "\t\tq->frame.charged = skb->len;", "size_table", "bytes"),
    ("header-by-device", "asymq.h", "skb->dev->type == ARPHRD_ETHER && (unsigned int)skb_network_offset(skb) >= ETH_HLEN", "skb->dev->type == ARPHRD_ETHER", "link_headers", "tun, at an IFB"),
    ("protocol-of-other-byte-order", H, "memcpy(scratch + 2 * ETH_ALEN, &skb->protocol, sizeof(skb->protocol));", "memcpy(scratch + 2 * ETH_ALEN, &(u16) { ntohs(skb->protocol) }, 2);", "link_headers", "tun"),
    ("bypassed-after-its-end", Q, "\tlist_del_init(&q->bypassed);\n", "", "bypass", ""),
    ("follower-after-its-end", Q, "\tasymq_unfollow(q);\n\tlist_del_init", "\tlist_del_init", "bypass", ""),
    ("observer-after-its-end", Q, "\tasymq_unhook(q);\n\tasymq_unfollow(q);\n\tlist_del_init", "\tasymq_unfollow(q);\n\tlist_del_init", C, ""),
    ("observer-of-any-discipline", Q, "\tif (!q->observes)\n\t\tasymq_unhook(q);\n", "", C, "without a reverse path"),
    ("reset-of-c-alone", P, "\tif (q->instance)\n\t\tasymq_reset(q->instance);\n\tskb_queue_walk", "\tskb_queue_walk", A, ""),
    ("memory-unaccounted", H, "\tgfp_t flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;", "\tgfp_t flags = GFP_KERNEL | __GFP_NOWARN;", "memory", "accounted"),
    ("no-wake-up-after-rates", Q, "\tasymq_examine(q);\n\tspin_unlock(&q->lock);\n\tif (sch->q.qlen)\n\t\tqdisc_watchdog_schedule_ns(&q->watchdog, now + 1);", "\tasymq_examine(q);\n\tspin_unlock(&q->lock);", S, "wait after"),
    ("no-wake-up-after-change", Q, "\tasymq_report_to_parents(q);\n\tif (sch->q.qlen)\n\t\tqdisc_watchdog_schedule_ns(&q->watchdog, now + 1);", "\tasymq_report_to_parents(q);", S, "wait after"),
    ("counters-zeroed-at-change", Q, "\tq->free_at = now;\n", "\tq->free_at = now;\n\tq->filtered = (struct asymq_count) {};\n", A, ""),
    ("request-without-statistics", Q, "\tq->changed = false;\n", "", S, "no statistics"),
    ("long-change-at-once", "sched.h", "#define ASYMQ_OFFERS_AT_CHANGE 1024", "#define ASYMQ_OFFERS_AT_CHANGE 1000000", "long_backlog", "takes"),
    ("long-change-reorders", P, "\tif (likely(!q->next_offer))\n\t\tasymq_offer_at", "\tif (1)\n\t\tasymq_offer_at", "long_backlog", ""),
    ("egress-redirect-is-reverse-path", P, "if (unlikely(q->ifb) && asymq_from_ingress(skb))", "if (unlikely(q->ifb))", "egress_redirect", "reverse"),
    ("deep-frame", P, "\tq->arriving = skb;", "\tvolatile u8 deep[6000];\n\n\tdeep[now % 6000] = 1;\n\tq->arriving = skb;", "gate", "a frame of 6"),
    ("deep-chain", W, "\tstruct asymq_sched *q = asymq_owner_of(device, skb);\n", "\tstruct asymq_sched *q = asymq_owner_of(device, skb);\n\tvolatile u8 deep[200];\n\n\tdeep[skb->len % 200] = 1;\n", "gate", "chain of packets"),
    ("deep-building", Q, "\t};\n\n\tmemset(built", "\t};\n\tvolatile u8 deep[1400];\n\n\tdeep[setup.now % 1400] = 1;\n\tmemset(built", "gate", "chain of building"),
]
# Two lines of one defect.
ALSO = {"dump-without-tree-lock": [(Q, "\t\tnla_put_u32(dump->skb, ASYMQ_STATS_FAILED, q->faults);\n\tspin_unlock(&q->lock);\n\tsch_tree_unlock(sch);", "\t\tnla_put_u32(dump->skb, ASYMQ_STATS_FAILED, q->faults);\n\tspin_unlock_bh(&q->lock);")],
        "dump-without-own-lock": [(Q, "\t\tnla_put_u32(dump->skb, ASYMQ_STATS_FAILED, q->faults);\n\tspin_unlock(&q->lock);\n", "\t\tnla_put_u32(dump->skb, ASYMQ_STATS_FAILED, q->faults);\n")],
        "options-dumped-without-lock": [(Q, "\tspin_unlock_bh(&q->lock);\n\treturn options", "\treturn options")],
        "options-dumped-with-softirqs": [(Q, "\tspin_unlock_bh(&q->lock);\n\treturn options", "\tspin_unlock(&q->lock);\n\treturn options")],
        "rates-without-tree-lock": [(Q, "\tspin_unlock(&q->lock);\n\tif (sch->q.qlen)\n\t\tqdisc_watchdog_schedule_ns(&q->watchdog, now + 1);\n\tsch_tree_unlock(sch);", "\tif (sch->q.qlen)\n\t\tqdisc_watchdog_schedule_ns(&q->watchdog, now + 1);\n\tspin_unlock_bh(&q->lock);")],
        "bypass-without-tree-lock": [(W, "\tsch_tree_unlock(q->sch);\n", "")],
        "rates-without-own-lock": [(Q, "\tspin_unlock(&q->lock);\n\tif (sch->q.qlen)", "\tif (sch->q.qlen)")],
        "change-without-tree-lock": [(Q, "\tspin_unlock(&q->lock);\n\tasymq_report_to_parents(q);", "\tspin_unlock_bh(&q->lock);\n\tasymq_report_to_parents(q);"), (Q, "\tsch_tree_unlock(sch);\n\tasymq_free_gone(gone);", "\tasymq_free_gone(gone);")],
        "change-without-own-lock": [(Q, "\tspin_unlock(&q->lock);\n\tasymq_report_to_parents(q);", "\tasymq_report_to_parents(q);")],
        "reset-with-softirqs": [(P, "\tsch->qstats.backlog = 0;\n\tspin_unlock_bh(&q->lock);", "\tsch->qstats.backlog = 0;\n\tspin_unlock(&q->lock);")],
        "learnt-with-softirqs": [(V, "\tspin_unlock_bh(&q->lock);", "\tspin_unlock(&q->lock);")],
        "unhook-with-softirqs": [(W, "\tspin_unlock_bh(&q->lock);", "\tspin_unlock(&q->lock);")],
        "last-is-taken-for-none": [(P, "\t\tsch->q.qlen -= !!skb;\n", "")],
        "no-watchdog-cancel": [(Q, "\tqdisc_watchdog_cancel(&q->watchdog);\n", "")],
        "no-lock-in-hook": [(W, "\tspin_unlock(&q->lock);\n}\n\nstatic void asymq_receive", "}\n\nstatic void asymq_receive")],
        "no-lock-at-enqueue": [(P, "\tasymq_examine(q);\n\tspin_unlock(&q->lock);\n\tif (!gone)", "\tasymq_examine(q);\n\tif (!gone)")]}


def apply(name, folder):
    """Applies one defect to a copy of kernel/module."""
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
