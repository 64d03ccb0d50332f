#!/bin/busybox sh
# The guest's side of linux-guest.sh: init of the initramfs. Prints PASS and FAIL lines.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /tmp

check() { # check NAME COMMAND...
    name=$1; shift
    if "$@" > /tmp/check.log 2>&1; then echo "PASS $name"; else echo "FAIL $name"; sed 's/^/    /' /tmp/check.log; fi
}
json() { inspect --live --json > /tmp/now.json 2> /tmp/json.err; [ $? -lt 2 ]; }
part() { sed "s/.*\"$1\":\(\[[^]]*\]\).*/\1/" "$2"; }
in_sync() { json && [ "$(grep -o '"differs":\[\]' /tmp/now.json | wc -l)" = 4 ]; }
named() { # named CPU GROUP...: inspect says so in text and JSON, and exits with 1
    inspect --live > /tmp/named.txt 2>&1
    [ $? = 1 ] || return 1
    cat /tmp/named.txt
    grep -q "CPU $1 (core [0-9]) differs in: $2" /tmp/named.txt || return 1
    json && grep -q "{\"cpu\":$1,\"differs\":\[\"$2\"\]}" /tmp/now.json
}
# The lines of the first layout inspect proposes, run one by one; every one must be accepted without a
# complaint.
apply() {
    awk '/^ *echo / { print; seen = 1; next } seen { exit }' /tmp/plan.txt > /tmp/lines.sh
    [ -s /tmp/lines.sh ] || { echo "no lines in:"; cat /tmp/plan.txt; return 1; }
    before=$(dmesg | grep -c -i mtrr)
    while read -r line; do
        echo "+ $line"
        sh -c "$line" || return 1
    done < /tmp/lines.sh
    dmesg | grep -i mtrr | tail -n 3
    [ "$(dmesg | grep -c -i mtrr)" = "$before" ]
}

# Before the module is loaded, the error names it and /proc/mtrr is read instead.
inspect --live > /tmp/proc.txt 2>&1
check "without the module: says which is missing" grep -q 'modprobe msr' /tmp/proc.txt
check "without the module: /proc/mtrr is used" grep -q 'ranges: 1 used' /tmp/proc.txt
insmod /msr.ko
check "msr module" test -e /dev/cpu/3/msr

# 1. The registers, as rdmsr shows them.
own_registers() {
    json || { cat /tmp/json.err; return 1; }
    : > /tmp/rdmsr.txt
    for msr in fe 2ff 277 250 258 259 268 269 26a 26b 26c 26d 26e 26f \
        200 201 202 203 204 205 206 207 208 209 20a 20b 20c 20d 20e 20f; do
        echo "rdmsr -a 0x$msr" >> /tmp/rdmsr.txt
        rdmsr -a 0x$msr >> /tmp/rdmsr.txt
    done
    bits=$(sed 's/.*"phys_bits":\([0-9]*\).*/\1/' /tmp/now.json)
    inspect --json --phys-bits "$bits" /tmp/rdmsr.txt > /tmp/rdmsr.json
    for key in map variable pat cpus; do
        [ "$(part $key /tmp/rdmsr.json)" = "$(part $key /tmp/now.json)" ] || { echo "$key"; cat /tmp/now.json /tmp/rdmsr.json; return 1; }
    done
}
check "live registers are those of rdmsr" own_registers
check "all CPUs in sync after boot" in_sync
inspect --live

# 2. One more range, then S3.
echo "base=0xf0000000 size=0x1000000 type=write-combining" > /proc/mtrr
sleep_and_wake() {
    echo 0 > /sys/class/rtc/rtc0/wakealarm
    echo +4 > /sys/class/rtc/rtc0/wakealarm
    echo mem > /sys/power/state
}
check "S3 and back" sleep_and_wake
check "all CPUs in sync after S3" in_sync
echo "INFO suspends: $(cat /sys/power/suspend_stats/success 2> /dev/null)"

# 3. One CPU de-synced.
pat=$(rdmsr -p 2 0x277)
wrmsr -p 2 0x277 0x0007040600070406
check "CPU 2 with another PAT is named" named 2 pat
wrmsr -p 2 0x277 0x$pat
wrmsr -p 1 0x20c 0xe0000001
wrmsr -p 1 0x20d 0xff000800
mask=$(rdmsr -p 3 0x201)
check "CPU 1 with another range is named" named 1 variable
wrmsr -p 1 0x20d 0
wrmsr -p 3 0x2ff 0x406
check "CPU 3 with its MTRRs off is named" named 3 default
wrmsr -p 3 0x2ff 0x$(rdmsr -p 0 0x2ff)
wrmsr -p 3 0x250 0x0
check "CPU 3 with other fixed ranges is named" named 3 fixed
wrmsr -p 3 0x250 0x$(rdmsr -p 0 0x250)
wrmsr -p 1 0x20e 0x12345000
check "a base without V is no difference" in_sync
wrmsr -p 1 0x20e 0

# 4. A framebuffer made write-combining through the lines inspect proposes.
promised() { # promised ADDR TYPE
    inspect --live --type "$1" > /tmp/type.txt
    cat /tmp/type.txt
    grep -q "^$1: $2 " /tmp/type.txt
}
inspect --live --want 0xfd000000+16M=WC | sed -n '/With what you want/,$p' > /tmp/plan.txt
cat /tmp/plan.txt
check "every line for the framebuffer is accepted" apply
check "the framebuffer is write-combining" promised 0xfd000000 WC
check "its last byte too" promised 0xfdffffff WC
check "before it nothing changed" promised 0xfcffffff UC
check "behind it nothing changed" promised 0xfe000000 UC
check "RAM is still write-back" promised 0x3fffffff WB
check "all CPUs in sync after the change" in_sync

# 5. A wasteful layout (default UC, RAM in five pieces), planned anew.
for index in 0 1 2 3 4 5 6 7; do
    grep -q "^reg0$index:" /proc/mtrr && echo "disable=$index" > /proc/mtrr
done
wrmsr -a 0x2ff 0xc00
for piece in 0x0/0x10000000 0x10000000/0x10000000 0x20000000/0x10000000 0x30000000/0x8000000 \
    0x38000000/0x8000000; do
    echo "base=${piece%/*} size=${piece#*/} type=write-back" > /proc/mtrr
done
json; part map /tmp/now.json > /tmp/before.map
check "five registers now" grep -q '"used":5' /tmp/now.json
inspect --live | sed -n '/^Fewest/,$p' > /tmp/plan.txt
cat /tmp/plan.txt
check "every line for the better layout is accepted" apply
same_map() { json && part map /tmp/now.json > /tmp/after.map && cat /tmp/after.map && cmp /tmp/before.map /tmp/after.map; }
check "the map is the same" same_map
check "one register does it" grep -q '"used":1' /tmp/now.json
check "all CPUs in sync at the end" in_sync
cat /proc/mtrr
echo "GUEST DONE"
poweroff -f
