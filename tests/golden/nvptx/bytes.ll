target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @bytes(ptr addrspace(1) noalias readonly align 1 nonnull dereferenceable(512) %A, ptr addrspace(1) noalias readonly align 1 nonnull dereferenceable(512) %B, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(128) %S, ptr addrspace(1) noalias writeonly align 1 nonnull dereferenceable(32) %C) #0 {
entry:
  %sum = alloca [1 x i32], align 16
  %product = alloca [4 x i32], align 16
  %g.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 16}
  %t = zext i32 %t.id to i64
  %.1.at = getelementptr i32, ptr %sum, i64 0
  store i32 0, ptr %.1.at, align 4
  br label %for.2.entry
for.2.entry:
  br label %for.2.head
for.2.head:
  %k = phi i64 [ 0, %for.2.entry ], [ %k.next, %for.2.latch ]
  %k.more = icmp slt i64 %k, 4
  br i1 %k.more, label %for.2.body, label %for.2.end
for.2.body:
  %.3 = mul i64 %g, 16
  %.4 = add i64 %.3, %t
  %.5 = mul i64 %.4, 16
  %.6 = mul i64 %k, 4
  %.7 = add i64 %.5, %.6
  %.8.at = getelementptr i8, ptr addrspace(1) %A, i64 %.7
  %.8 = load <4 x i8>, ptr addrspace(1) %.8.at, align 1
  %.9 = sext <4 x i8> %.8 to <4 x i32>
  %.10 = mul i64 %g, 16
  %.11 = add i64 %.10, %t
  %.12 = mul i64 %.11, 16
  %.13 = mul i64 %k, 4
  %.14 = add i64 %.12, %.13
  %.15.at = getelementptr i8, ptr addrspace(1) %B, i64 %.14
  %.15 = load <4 x i8>, ptr addrspace(1) %.15.at, align 1
  %.16 = zext <4 x i8> %.15 to <4 x i32>
  %.17 = mul <4 x i32> %.9, %.16
  %.18.at = getelementptr i32, ptr %product, i64 0
  store <4 x i32> %.17, ptr %.18.at, align 16
  br label %for.19.entry
for.19.entry:
  br label %for.19.head
for.19.head:
  %j = phi i64 [ 0, %for.19.entry ], [ %j.next, %for.19.latch ]
  %j.more = icmp slt i64 %j, 4
  br i1 %j.more, label %for.19.body, label %for.19.end
for.19.body:
  %.20.at = getelementptr i32, ptr %sum, i64 0
  %.20 = load i32, ptr %.20.at, align 4
  %.21.at = getelementptr i32, ptr %product, i64 %j
  %.21 = load i32, ptr %.21.at, align 4
  %.22 = add i32 %.20, %.21
  %.23.at = getelementptr i32, ptr %sum, i64 0
  store i32 %.22, ptr %.23.at, align 4
  br label %for.19.latch
for.19.latch:
  %j.next = add i64 %j, 1
  br label %for.19.head
for.19.end:
  br label %for.2.latch
for.2.latch:
  %k.next = add i64 %k, 1
  br label %for.2.head
for.2.end:
  %.24.at = getelementptr i32, ptr %sum, i64 0
  %.24 = load i32, ptr %.24.at, align 4
  %.25 = mul i64 %g, 16
  %.26 = add i64 %.25, %t
  %.27.at = getelementptr i32, ptr addrspace(1) %S, i64 %.26
  store i32 %.24, ptr addrspace(1) %.27.at, align 4
  %.28.at = getelementptr i32, ptr %sum, i64 0
  %.28 = load i32, ptr %.28.at, align 4
  %.29 = ashr i32 %.28, 8
  %.30.better = icmp sgt i32 -128, %.29
  %.30 = select i1 %.30.better, i32 -128, i32 %.29
  %.31.better = icmp slt i32 127, %.30
  %.31 = select i1 %.31.better, i32 127, i32 %.30
  %.32 = trunc i32 %.31 to i8
  %.33 = mul i64 %g, 16
  %.34 = add i64 %.33, %t
  %.35.at = getelementptr i8, ptr addrspace(1) %C, i64 %.34
  store i8 %.32, ptr addrspace(1) %.35.at, align 1
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @bytes, !"maxntidx", i32 16, !"maxntidy", i32 1, !"maxntidz", i32 1}
