target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @control(ptr addrspace(1) noalias readonly align 8 nonnull dereferenceable(512) %A, ptr addrspace(1) noalias writeonly align 8 nonnull dereferenceable(512) %B, i8 %a, i16 %b, i64 %c, i32 %low) #0 {
entry:
  %T = alloca [3 x i64], align 16
  %z.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z(), !range !{i32 0, i32 2}
  %z = zext i32 %z.id to i64
  %y.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y(), !range !{i32 0, i32 2}
  %y = zext i32 %y.id to i64
  %x.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2}
  %x = zext i32 %x.id to i64
  %tz.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.z(), !range !{i32 0, i32 2}
  %tz = zext i32 %tz.id to i64
  %ty.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.y(), !range !{i32 0, i32 2}
  %ty = zext i32 %ty.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 2}
  %tx = zext i32 %tx.id to i64
  %.1 = mul i64 %z, 2
  %.2 = add i64 %.1, %y
  %.3 = mul i64 %.2, 2
  %.4 = add i64 %.3, %x
  %.5 = mul i64 %.4, 8
  %.6 = mul i64 %tz, 2
  %.7 = add i64 %.6, %ty
  %.8 = mul i64 %.7, 2
  %.9 = add i64 %.5, %.8
  %.10 = add i64 %.9, %tx
  br label %for.11.entry
for.11.entry:
  br label %for.11.head
for.11.head:
  %k = phi i64 [ 0, %for.11.entry ], [ %k.next, %for.11.latch ]
  %k.more = icmp slt i64 %k, 3
  br i1 %k.more, label %for.11.body, label %for.11.end
for.11.body:
  %.12 = add i64 %.10, %k
  %.13 = and i64 %.12, 63
  %.14.at = getelementptr i64, ptr addrspace(1) %A, i64 %.13
  %.14 = load i64, ptr addrspace(1) %.14.at, align 8
  %.15.at = getelementptr i64, ptr %T, i64 %k
  store i64 %.14, ptr %.15.at, align 8
  br label %for.11.latch
for.11.latch:
  %k.next = add i64 %k, 1
  br label %for.11.head
for.11.end:
  %.16 = add i64 1, 2
  br label %for.17.entry
for.17.entry:
  br label %for.17.head
for.17.head:
  %k.1 = phi i64 [ 1, %for.17.entry ], [ %k.1.next, %for.17.latch ]
  %k.1.more = icmp slt i64 %k.1, %.16
  br i1 %k.1.more, label %for.17.body, label %for.17.end
for.17.body:
  %.18.at = getelementptr i64, ptr %T, i64 0
  %.18 = load i64, ptr %.18.at, align 8
  %.19.at = getelementptr i64, ptr %T, i64 %k.1
  %.19 = load i64, ptr %.19.at, align 8
  %.20.zero = icmp eq i64 %.19, 0
  %.20.negates = icmp eq i64 %.19, -1
  %.20.unsafe = or i1 %.20.zero, %.20.negates
  %.20.divisor = select i1 %.20.unsafe, i64 1, i64 %.19
  %.20.quotient = sdiv i64 %.18, %.20.divisor
  %.20.negated = sub i64 0, %.18
  %.20.nonzero = select i1 %.20.negates, i64 %.20.negated, i64 %.20.quotient
  %.20.truncated = select i1 %.20.zero, i64 0, i64 %.20.nonzero
  %.20.remainder = srem i64 %.18, %.20.divisor
  %.20.inexact = icmp ne i64 %.20.remainder, 0
  %.20.signs = xor i64 %.20.remainder, %.19
  %.20.differ = icmp slt i64 %.20.signs, 0
  %.20.below = and i1 %.20.inexact, %.20.differ
  %.20.lesser = add i64 %.20.truncated, -1
  %.20 = select i1 %.20.below, i64 %.20.lesser, i64 %.20.truncated
  %.21.at = getelementptr i64, ptr %T, i64 0
  %.21 = load i64, ptr %.21.at, align 8
  %.22 = sext i8 %a to i64
  %.23 = sub i64 %.22, %k.1
  %.24.zero = icmp eq i64 %.23, 0
  %.24.negates = icmp eq i64 %.23, -1
  %.24.unsafe = or i1 %.24.zero, %.24.negates
  %.24.divisor = select i1 %.24.unsafe, i64 1, i64 %.23
  %.24.remainder = srem i64 %.21, %.24.divisor
  %.24.inexact = icmp ne i64 %.24.remainder, 0
  %.24.signs = xor i64 %.24.remainder, %.23
  %.24.differ = icmp slt i64 %.24.signs, 0
  %.24.below = and i1 %.24.inexact, %.24.differ
  %.24.raised = add i64 %.24.remainder, %.23
  %.24 = select i1 %.24.below, i64 %.24.raised, i64 %.24.remainder
  %.25 = sub i64 %.20, %.24
  %.26.at = getelementptr i64, ptr %T, i64 0
  store i64 %.25, ptr %.26.at, align 8
  br label %for.17.latch
for.17.latch:
  %k.1.next = add i64 %k.1, 1
  br label %for.17.head
for.17.end:
  %.27.at = getelementptr i64, ptr %T, i64 0
  %.27 = load i64, ptr %.27.at, align 8
  %.28 = zext i16 %b to i64
  %.29 = icmp sgt i64 %.27, %.28
  %.30 = icmp slt i32 %low, 3
  %.31 = and i1 %.29, %.30
  %.32 = icmp eq i64 %c, 9
  %.33 = or i1 %.31, %.32
  br i1 %.33, label %if.34.then, label %if.34.end
if.34.then:
  %.35.at = getelementptr i64, ptr %T, i64 1
  %.35 = load i64, ptr %.35.at, align 8
  %.36.within = icmp ult i64 %.10, 64
  %.36.shifted = shl i64 %.35, %.10
  %.36 = select i1 %.36.within, i64 %.36.shifted, i64 0
  %.37.at = getelementptr i64, ptr %T, i64 1
  store i64 %.36, ptr %.37.at, align 8
  br label %if.34.end
if.34.end:
  %.38.at = getelementptr i64, ptr %T, i64 2
  %.38 = load i64, ptr %.38.at, align 8
  %.39 = icmp eq i64 %.38, 0
  br i1 %.39, label %choose.40.then, label %choose.40.else
choose.40.then:
  %.41.at = getelementptr i64, ptr %T, i64 0
  %.41 = load i64, ptr %.41.at, align 8
  br label %choose.40.then.end
choose.40.then.end:
  br label %choose.40.end
choose.40.else:
  %.42.at = getelementptr i64, ptr %T, i64 1
  %.42 = load i64, ptr %.42.at, align 8
  %.43 = mul i64 %.42, 3
  %.44 = ashr i64 %.43, 1
  %.45.at = getelementptr i64, ptr %T, i64 2
  %.45 = load i64, ptr %.45.at, align 8
  %.46 = and i64 %.43, %.45
  %.47 = xor i64 %.44, %.46
  %.48 = or i64 %.47, -7
  br label %choose.40.else.end
choose.40.else.end:
  br label %choose.40.end
choose.40.end:
  %.49 = phi i64 [ %.41, %choose.40.then.end ], [ %.48, %choose.40.else.end ]
  %.50.at = getelementptr i64, ptr addrspace(1) %B, i64 %.10
  store i64 %.49, ptr addrspace(1) %.50.at, align 8
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @control, !"maxntidx", i32 2, !"maxntidy", i32 2, !"maxntidz", i32 2}
