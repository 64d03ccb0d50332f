/*
 * A small kernel in C that uses mtrr_pat.h: starts every CPU, gives all of them one memory type for each address, sleeps in
 * S3, wakes, does it again, and compares. On COM1 it says what it did; QEMU's exit code is 33 if all of it was right.
 */
#include "../mtrr_pat.h"

enum { MAX_CPUS = 8, TRAMPOLINE = 0x8000, FIRMWARE_PAGE = 0x10000, KICK = 0xf0, SPURIOUS = 0xff, APIC = 0xfee00000 };
enum { WAIT_ARRIVAL = 500, WAIT_ONLINE = 20000 }; /* milliseconds */

void *memcpy(void *to, const void *from, size_t n); /* in boot.s */
int memcmp(const void *a, const void *b, size_t n);

/* Instructions. */
static void out8(uint16_t port, uint8_t v) { __asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(port)); }
static void out16(uint16_t port, uint16_t v) { __asm__ volatile("outw %0, %1" : : "a"(v), "Nd"(port)); }
static void out32(uint16_t port, uint32_t v) { __asm__ volatile("outl %0, %1" : : "a"(v), "Nd"(port)); }
static uint8_t in8(uint16_t port) { uint8_t v; __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static uint16_t in16(uint16_t port) { uint16_t v; __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static uint32_t in32(uint16_t port) { uint32_t v; __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static uint64_t rdtsc(void) { uint32_t a, d; __asm__ volatile("rdtsc" : "=a"(a), "=d"(d)); return (uint64_t)d << 32 | a; }
static void sti(void) { __asm__ volatile("sti" : : : "memory"); }
static void cli(void) { __asm__ volatile("cli" : : : "memory"); }
static uint64_t rdmsr(uint32_t msr) { uint32_t a, d; __asm__ volatile("rdmsr" : "=a"(a), "=d"(d) : "c"(msr)); return (uint64_t)d << 32 | a; }

/* Serial port, and the end. */
static void put(const char *text)
{
    for (; *text; text++) {
        out8(0x3f8, (uint8_t)*text);
        while (!(in8(0x3fd) & 0x40)) {}
    }
}
static void put_hex(uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        if (value >> shift || !shift)
            put((char[2]){"0123456789abcdef"[value >> shift & 15]});
}
static void put_line(const char *line, void *indent) { put(indent), put(line), put("\n"); }
static void __attribute__((noreturn)) halt(void)
{
    for (;;)
        __asm__ volatile("cli; hlt");
}
static void __attribute__((noreturn)) leave(int differ)
{
    put("ALL DONE differ="), put_hex((uint64_t)differ), put("\n");
    out32(0xf4, differ ? 0x11 : 0x10);
    halt();
}
void fatal(void) { put(" FATAL\n"), leave(1); }
void mtrr_pat_panic(const char *text, size_t length)
{
    for (; length--; text++)
        put((char[2]){*text});
    fatal();
}
/* Every call goes through here: what was not OK is said, and counted. */
static int differ;
static bool ok(const char *what, mtrr_pat_code code, const struct mtrr_pat_info *info)
{
    put(what), put(": "), put(mtrr_pat_name(code)), put(" "), put_line(info->text[0] ? info->text : mtrr_pat_text(code), "");
    differ += code != MTRR_PAT_OK;
    return code == MTRR_PAT_OK;
}
static void expect(const char *what, bool right)
{
    if (!right)
        differ++, put("WRONG: "), put(what), put("\n");
}

/* The local APIC. */
static volatile uint32_t *apic(uint32_t reg) { return (volatile uint32_t *)(uintptr_t)(APIC + reg); }
static void send(uint32_t apic_id, uint32_t command)
{
    *apic(0x310) = apic_id << 24;
    *apic(0x300) = command;
    while (*apic(0x300) & 1 << 12) {}
}
static uint32_t apic_ids[MAX_CPUS], cpus;
static void kick(size_t cpu, void *context) { (void)context, send(apic_ids[cpu], 0x4000 | KICK); }
static uint32_t this_cpu(void)
{
    for (uint32_t n = 0;; n++)
        if (apic_ids[n] == *apic(0x20) >> 24)
            return n;
}

/* Interrupts. */
static struct gate { uint16_t low, selector, flags, middle; uint32_t high, zero; } idt[256];
extern void kick_entry(void), protection_entry(void), fatal_entry(void);
static void set_gate(int vector, void (*entry)(void))
{
    uintptr_t at = (uintptr_t)entry;
    idt[vector] = (struct gate){(uint16_t)at, 0x18, 0x8e00, (uint16_t)(at >> 16), (uint32_t)(at >> 32), 0};
}
static void take_interrupts(void)
{
    struct { uint16_t limit; uint64_t base; } __attribute__((packed)) idtr = {sizeof idt - 1, (uintptr_t)idt};
    __asm__ volatile("lidt %0" : : "m"(idtr));
    *apic(0xf0) = 0x100 | SPURIOUS;
}
uint64_t general_protection(uint64_t rip)
{
    if (!mtrr_pat_fixup(rip))
        put("#GP at "), put_hex(rip), fatal();
    return mtrr_pat_fixup(rip);
}
static volatile uint32_t park, parked, stray;
static bool is_target(void);
void kicked(void)
{
    uint32_t me = this_cpu();
    *apic(0xb0) = 0;
    mtrr_pat_attend(me, NULL);
    if (me && park) {
        if (!is_target())
            __atomic_add_fetch(&stray, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&parked, 1, __ATOMIC_SEQ_CST);
        halt();
    }
}

/* ACPI: the CPUs, and the registers for sleeping. */
static struct { uint32_t facs; uint16_t control, smi, timer, events, s3; uint8_t enable; } fixed;
static uint32_t at32(uintptr_t at) { typedef uint32_t __attribute__((aligned(1))) any; return *(volatile any *)at; }
static uint8_t at8(uintptr_t at) { return *(volatile uint8_t *)at; }
static void read_tables(uintptr_t rsdp)
{
    uintptr_t rsdt = at32(rsdp + 16);
    apic_ids[cpus++] = *apic(0x20) >> 24;
    for (uintptr_t entry = rsdt + 36; entry < rsdt + at32(rsdt + 4); entry += 4) {
        uintptr_t table = at32(entry);
        if (!memcmp((void *)table, "APIC", 4))
            for (uintptr_t at = table + 44; at < table + at32(table + 4); at += at8(at + 1))
                if (at8(at) == 0 && at32(at + 4) & 1 && at8(at + 3) != apic_ids[0] && cpus < MAX_CPUS)
                    apic_ids[cpus++] = at8(at + 3);
        if (!memcmp((void *)table, "FACP", 4)) {
            fixed.facs = at32(table + 36), fixed.smi = (uint16_t)at32(table + 48), fixed.enable = at8(table + 52);
            fixed.events = (uint16_t)at32(table + 56), fixed.control = (uint16_t)at32(table + 64);
            fixed.timer = (uint16_t)at32(table + 76);
            uintptr_t dsdt = at32(table + 40), end = dsdt + at32(dsdt + 4);
            /* Name (_S3, Package () {a, ..}): op, length, count, then a number: 0, 1 or 0x0a and a byte. */
            for (uintptr_t at = dsdt; at + 9 < end; at++)
                if (!memcmp((void *)at, "_S3_\x12", 5))
                    fixed.s3 = at8(at + 7) == 0x0a ? at8(at + 8) : at8(at + 7);
        }
    }
}
static uint64_t ticks_per_ms;
static void measure(void) /* by the power-management timer, 3579545 Hz, 24 bits */
{
    uint32_t start = in32(fixed.timer);
    uint64_t tsc = rdtsc();
    while (((in32(fixed.timer) - start) & 0xffffff) < 35795) {}
    ticks_per_ms = (rdtsc() - tsc) / 10;
}

/* APs. */
extern char trampoline_start[], trampoline_end[], stacks[]; /* CPU 0 has the first 64 KiB of them, which were zero */
volatile uint32_t next_cpu;
static volatile uint32_t arrived, go;
void ap_main(uint32_t me)
{
    struct mtrr_pat_info info;
    arrived = me;
    while (go != me) {}
    if (mtrr_pat_ap_online(me, NULL, NULL, &info) != MTRR_PAT_OK && !info.done)
        halt();
    take_interrupts();
    for (;;)
        __asm__ volatile("sti; hlt" : : : "memory");
}
/* One at a time. An AP that has arrived is never sent an INIT before it is told to go on: it is not reset in a window. */
static bool waited(uint32_t ms, bool (*over)(uint32_t), uint32_t cpu)
{
    for (uint64_t end = rdtsc() + ms * ticks_per_ms; !over(cpu) && rdtsc() < end;)
        mtrr_pat_hold_point(0, NULL);
    return over(cpu);
}
static bool is_here(uint32_t cpu) { return arrived == cpu; }
static bool is_up(uint32_t cpu) { return mtrr_pat_state(cpu) == MTRR_PAT_RUNNING; }
static bool are_parked(uint32_t count) { return parked == count; }
static void start(uint32_t cpu)
{
    struct mtrr_pat_info info;
    next_cpu = cpu, arrived = go = 0;
    cli();
    if (!ok("starting", mtrr_pat_starting(cpu, apic_ids[cpu], &info), &info))
        return;
    for (int tries = 0; tries < 10 && !is_here(cpu); tries++) {
        send(apic_ids[cpu], 0x4500);
        waited(1, is_here, cpu);
        send(apic_ids[cpu], 0x4600 | TRAMPOLINE >> 12);
        waited(WAIT_ARRIVAL, is_here, cpu);
    }
    sti();
    go = cpu;
    if (!waited(WAIT_ONLINE, is_up, cpu)) {
        send(apic_ids[cpu], 0x4500);
        ok("not up: offline", mtrr_pat_offline(cpu, &info), &info), differ++;
    }
}

/* A machine that is up: all CPUs in line, and a frame buffer in write-combining, which has to outlive S3. */
static const uint64_t buffer = 0xe0000000, size = 0x1000000;
static uint64_t ram_end;
static void live(bool first)
{
    struct mtrr_pat_info info;
    uint32_t type = 0, mtrr = 0;
    uint64_t bits;
    for (uint32_t cpu = 1; cpu < cpus; cpu++)
        start(cpu);
    ok("resync", mtrr_pat_resync(0, kick, NULL, &info), &info);
    expect("all CPUs met", info.cpus == cpus);
    if (first)
        ok("write-combining", mtrr_pat_set_range(0, buffer, buffer + size, MTRR_PAT_WC, ram_end, kick, NULL, &info), &info);
    ok("check", mtrr_pat_check(0, kick, NULL, &info), &info);
    expect("no CPU differs", info.cpus == cpus && !info.differed);
    /* The frame buffer through pages of UC- is WC by its MTRR; RAM through pages of WC is that by its page. */
    expect("UC-", !mtrr_pat_page_bits(MTRR_PAT_UC_MINUS, false, &bits, NULL)
                      && !mtrr_pat_effective(buffer, bits, false, &type, &mtrr));
    expect("frame buffer", type == MTRR_PAT_WC && mtrr == MTRR_PAT_WC);
    expect("WC", !mtrr_pat_page_bits(MTRR_PAT_WC, true, &bits, NULL) && !mtrr_pat_effective(0x2000000, bits, true, &type, &mtrr));
    expect("RAM", type == MTRR_PAT_WC && mtrr == MTRR_PAT_WB);
    mtrr_pat_report(put_line, "  ");
}
static void enter(void)
{
    uint16_t control = (uint16_t)((in16(fixed.control) & ~0x3c00) | fixed.s3 << 10);
    __asm__ volatile("wbinvd" : : : "memory");
    out16(fixed.control, control), out16(fixed.control, control | 1 << 13);
    for (uint64_t end = rdtsc() + 2000 * ticks_per_ms; rdtsc() < end;) {}
}
extern int s3_sleep(void (*enter)(void));
/* Whether this CPU's registers, read by nobody but this kernel, are the target's. */
static bool is_target(void)
{
    struct mtrr_pat_registers want;
    bool same = mtrr_pat_target(&want, NULL) == MTRR_PAT_OK && rdmsr(0x2ff) == want.def_type && rdmsr(0x277) == want.pat;
    for (uint32_t n = 0; n < want.variable_count; n++)
        same &= rdmsr(0x200 + 2 * n) == want.base[n] && rdmsr(0x201 + 2 * n) == want.mask[n];
    return same;
}
static void park_all(void)
{
    park = 1, parked = stray = 0;
    for (uint32_t cpu = 1; cpu < cpus; cpu++)
        kick(cpu, NULL);
    expect("APs are parked", waited(WAIT_ONLINE, are_parked, cpus - 1));
    expect("with the registers all CPUs have", is_target() && !stray);
}
static void sleep(void)
{
    struct mtrr_pat_info info;
    park_all();
    cli();
    if (!(in16(fixed.control) & 1))
        out8(fixed.smi, fixed.enable);
    *(volatile uint32_t *)(uintptr_t)(fixed.facs + 12) = TRAMPOLINE;
    *(volatile uint64_t *)(uintptr_t)(fixed.facs + 24) = 0;
    out16(fixed.events, 0x8731);
    ok("suspend", mtrr_pat_suspend(0, &info), &info);
    if (!s3_sleep(enter))
        ok("did not sleep", mtrr_pat_suspend_aborted(&info), &info), leave(++differ);
    put(is_target() ? "S3 took nothing\n" : "S3 took the registers\n");
    ok("resume", mtrr_pat_boot_resume(0, &info), &info);
    expect("the boot CPU has them again", is_target());
    take_interrupts();
    park = 0;
}

void kernel_main(uintptr_t start_info)
{
    struct mtrr_pat_info info;
    const char *line = (const char *)(uintptr_t)at32(start_info + 24), *lowest = stacks;
    for (uintptr_t at = at32(start_info + 40), n = at32(start_info + 48); n--; at += 24)
        if (at32(at + 16) == 1)
            ram_end = *(uint64_t *)at + *(uint64_t *)(at + 8);
    for (int vector = 0; vector < 256; vector++)
        set_gate(vector, fatal_entry);
    set_gate(13, protection_entry), set_gate(KICK, kick_entry);
    out8(0x21, 0xff), out8(0xa1, 0xff);
    take_interrupts();
    read_tables(at32(start_info + 32));
    measure();
    memcpy((void *)TRAMPOLINE, trampoline_start, (size_t)(trampoline_end - trampoline_start));
    memcpy((void *)FIRMWARE_PAGE, "\xfa\xf4\xeb\xfd", 4); /* a late SIPI of the firmware's: CLI; HLT; JMP */
    mtrr_pat_log_to(put_line, "", false);
    ok("boot", mtrr_pat_boot_init(0, line, ticks_per_ms * 1000, &info), &info);
    live(true);
    sleep();
    live(false);
    park_all();
    expect("a name", !memcmp(mtrr_pat_name(mtrr_pat_parked(0, &info)), "MTRR_PAT_IS_BOOT_CPU", 21));
    for (; !*lowest; lowest++) {}
    put("stack of the boot CPU, bytes: "), put_hex((uint64_t)(stacks + 0x10000 - lowest)), put("\n");
    leave(differ);
}
