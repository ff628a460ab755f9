# The dumbbell of AQ's section 4 in ns-2.35, DropTail in both directions.
#
#   ns dumbbell.tcl KEY VALUE ...
#
# prints "UP DOWN UPDATA DOWNDATA": the utilization of the bottleneck link after warm-up, 0 to 1, by
# all bytes and by data packets. Each flow has its own access link at either end (100 Mbit/s, 1000
# packets): 1 ms of delay at home, the rest of its round-trip time at the server. Flows start
# uniformly in the first second.

array set opt {
    up 1e6  down 10e6  flows-up 5  flows-down 10  rtt-min 0.020  rtt-max 0.300
    buffer 50  buffer-down 50  mss 1460  tcp Newreno  sink TCPSink  window 100000
    duration 60  warmup 5  seed 1
}
foreach {key value} $argv {
    if {![info exists opt($key)]} {
        puts stderr "unknown key '$key'; use [join [lsort [array names opt]] {, }]"
        exit 2
    }
    set opt($key) $value
}

Agent/TCP set packetSize_ $opt(mss)
# Maximum window in packets; the default never limits a flow.
Agent/TCP set window_ $opt(window)

set ns [new Simulator]
$defaultRNG seed $opt(seed)
set draw [new RNG]

set gateway [$ns node]
set isp [$ns node]

proc link {from to rate delay limit} {
    global ns
    $ns simplex-link $from $to $rate ${delay}s DropTail
    $ns queue-limit $from $to $limit
}

link $gateway $isp $opt(up) 0.005 $opt(buffer)
link $isp $gateway $opt(down) 0.005 $opt(buffer-down)
set monitor_up [$ns monitor-queue $gateway $isp ""]
set monitor_down [$ns monitor-queue $isp $gateway ""]

proc flow {upload} {
    global ns opt draw gateway isp
    set rtt [$draw uniform $opt(rtt-min) $opt(rtt-max)]
    set home [$ns node]
    set server [$ns node]
    foreach {a b delay} [list $home $gateway 0.001 $isp $server [expr {$rtt / 2 - 0.006}]] {
        link $a $b 100e6 $delay 1000
        link $b $a 100e6 $delay 1000
    }
    set source [new Agent/TCP/$opt(tcp)]
    set sink [new Agent/$opt(sink)]
    $ns attach-agent [expr {$upload ? $home : $server}] $source
    $ns attach-agent [expr {$upload ? $server : $home}] $sink
    $ns connect $source $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $source
    $ns at [$draw uniform 0 1] "$ftp start"
}

for {set i 0} {$i < $opt(flows-up)} {incr i} { flow 1 }
for {set i 0} {$i < $opt(flows-down)} {incr i} { flow 0 }

# Bytes and packets dequeued from each queue.
proc counts {} {
    global monitor_up monitor_down
    set counts {}
    foreach monitor [list $monitor_up $monitor_down] {
        lappend counts [$monitor set bdepartures_] [$monitor set pdepartures_]
    }
    return $counts
}
proc finish {} {
    global opt start
    set span [expr {$opt(duration) - $opt(warmup)}]
    set size [expr {$opt(mss) + 40.0}]
    foreach {bytes packets} [counts] {bytes_0 packets_0} $start capacity [list $opt(up) $opt(down)] {
        set bytes [expr {double($bytes - $bytes_0)}]
    # ns-2 counts in signed 32 bits; no run here sends 4 GiB.
    if {$bytes < 0} { set bytes [expr {$bytes + 4294967296.0}] }
        # All packets are data of one size or ACKs of 40 bytes.
        set data [expr {($bytes - 40.0 * ($packets - $packets_0)) / ($size - 40) * $size}]
        lappend all [expr {$bytes * 8 / $span / $capacity}]
        lappend of_data [expr {$data * 8 / $span / $capacity}]
    }
    puts [concat $all $of_data]
    exit 0
}
$ns at $opt(warmup) {set start [counts]}
$ns at $opt(duration) finish
$ns run
