# Entry of the C kernel by PVH (QEMU -kernel): 32-bit protected mode, no paging, EBX: start-info block.
# One-to-one map of 4 GiB in 2 MiB pages; CR4.OSFXSR stays clear, so an SSE instruction would fault.

.section .note.pvh, "a", @note
.balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_entry

.section .boot.text, "ax"
.code32
.globl pvh_entry
pvh_entry:
    cli
    cld
    # Once, and never after S3: .bss is cleared, and .data copied to where it lives.
    movl $bss_start, %edi
    movl $bss_end, %ecx
    subl %edi, %ecx
    xorl %eax, %eax
    rep stosb
    movl $data_load, %esi
    movl $data_start, %edi
    movl $data_end, %ecx
    subl %edi, %ecx
    rep movsb
    # Page tables. The last GiB, where devices are, uncached: PCD and PWT.
    movl $tables + 0x2000, %edi
    movl $0x183, %eax               # present, writable, large, global
    movl $2048, %ecx
1:  cmpl $512, %ecx
    jne 2f
    orl $0x18, %eax
2:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b
    movl $tables + 0x1003, tables
    movl $tables + 0x2003, tables + 0x1000
    movl $tables + 0x3003, tables + 0x1008
    movl $tables + 0x4003, tables + 0x1010
    movl $tables + 0x5003, tables + 0x1018
    jmp to_long_mode

# To 64-bit mode, from protected mode without paging, with these segments or the trampoline's.
to_long_mode:
    movl $0xa0, %eax                # CR4: PAE, PGE
    movl %eax, %cr4
    movl $tables, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER.LME
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax                 # CD and NW as they are
    orl $0x80010001, %eax           # PG, WP, PE
    movl %eax, %cr0
    lgdt gdtr
    ljmpl $0x18, $long_mode

.code64
long_mode:
    movl $0x20, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl $0x1b, %ecx                # IA32_APIC_BASE bit 8: the boot CPU
    rdmsr
    testl $0x100, %eax
    jz ap
    cmpl $0, slept(%rip)
    jne woken
    movq $stacks + STACK, %rsp
    movl %ebx, %edi
    call kernel_main
ap: movl next_cpu(%rip), %edi       # one AP comes at a time: the boot CPU waits for each
    movq %rdi, %rax
    incq %rax
    imulq $STACK, %rax
    leaq stacks(%rax), %rsp
    call ap_main

# int s3_sleep(void (*enter)(void)): 1 after the wake, 0 if `enter` came back, so that nobody slept.
.globl s3_sleep
s3_sleep:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    movq %rsp, slept_stack(%rip)
    movl $1, slept(%rip)
    call *%rdi
    xorl %eax, %eax
    jmp 1f
woken:
    movq slept_stack(%rip), %rsp
    movl $1, %eax
1:  movl $0, slept(%rip)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    retq

# What GCC and the library expect of every freestanding program, as the C standard has it.
.globl memcpy, memmove, memset, memcmp, bcmp, strlen
strlen:
    xorl %eax, %eax
    cmpb $0, (%rdi)
    je 1f
2:  incq %rax
    cmpb $0, (%rdi, %rax)
    jne 2b
1:  retq
memmove:
    movq %rdi, %rax
    movq %rdi, %rcx
    subq %rsi, %rcx
    cmpq %rdx, %rcx
    jae memcpy                      # the target is not inside the source
    movq %rdx, %rcx
    leaq -1(%rdi, %rdx), %rdi
    leaq -1(%rsi, %rdx), %rsi
    std
    rep movsb
    cld
    retq
memcpy:
    movq %rdi, %rax
    movq %rdx, %rcx
    rep movsb
    retq
memset:
    movq %rdi, %r8
    movl %esi, %eax
    movq %rdx, %rcx
    rep stosb
    movq %r8, %rax
    retq
bcmp:
memcmp:
    xorl %eax, %eax
    movq %rdx, %rcx
    cmpq %rcx, %rcx                 # equal, if there is nothing to compare
    repe cmpsb
    je 1f
    movzbl -1(%rdi), %eax
    movzbl -1(%rsi), %ecx
    subl %ecx, %eax                 # of the first string, at RDI, what the second has
1:  retq

# The kick's interrupt, and #GP: the handlers are C that saves all but RAX, RCX, RDX, RSI, RDI, R8-R11.
.macro SAVE
    .irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
    pushq %\register
    .endr
    pushq %rbp
    movq %rsp, %rbp
    andq $-16, %rsp
    cld
.endm
.macro RESTORE
    movq %rbp, %rsp
    popq %rbp
    .irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
    popq %\register
    .endr
.endm
.globl kick_entry
kick_entry:
    SAVE
    call kicked
    RESTORE
    iretq
.globl protection_entry
protection_entry:
    SAVE
    movq 88(%rbp), %rdi             # RIP, above ten registers and the error code
    call general_protection
    movq %rax, 88(%rbp)
    RESTORE
    addq $8, %rsp                   # error code
    iretq
.globl fatal_entry
fatal_entry:
    andq $-16, %rsp
    call fatal

# What a CPU executes first after a SIPI or S3, in real mode; copied to 0x8000.
.section .rodata.trampoline, "a"
.code16
.globl trampoline_start, trampoline_end
trampoline_start:
    cli
    movw %cs, %ax
    movw %ax, %ds
    lgdtl trampoline_gdtr - trampoline_start
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x08, $protected
trampoline_gdtr:
    .short 39
    .long 0x8000 + trampoline_gdt - trampoline_start
.balign 8
trampoline_gdt:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
trampoline_end:

.section .boot.text, "ax"
.code32
protected:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    jmp to_long_mode

.balign 8
gdt:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
gdtr:
    .short 39
    .long gdt

.equ STACK, 65536
.section .bss, "aw", @nobits
.balign 4096
.globl stacks
tables: .skip 6 * 4096
stacks: .skip 8 * STACK
slept_stack: .skip 8
slept: .skip 4
