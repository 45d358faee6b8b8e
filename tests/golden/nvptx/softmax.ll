target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@softmax.T = internal addrspace(3) global [16 x float] undef, align 16

define ptx_kernel void @softmax(ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(384) %A, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(384) %B) #0 {
entry:
  %kept = alloca [2 x float], align 16
  %row.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 6}
  %row = zext i32 %row.id to i64
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 16}
  %t = zext i32 %t.id to i64
  %.1 = mul i64 %row, 16
  %.2 = add i64 %.1, %t
  %.3.at = getelementptr float, ptr addrspace(1) %A, i64 %.2
  %.3 = load float, ptr addrspace(1) %.3.at, align 4
  %.4.at = getelementptr float, ptr %kept, i64 0
  store float %.3, ptr %.4.at, align 4
  %.5.at = getelementptr float, ptr %kept, i64 0
  %.5 = load float, ptr %.5.at, align 4
  %.6.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %t
  store float %.5, ptr addrspace(3) %.6.at, align 4
  call void @llvm.nvvm.barrier0()
  br label %for.7.entry
for.7.entry:
  br label %for.7.head
for.7.head:
  %k = phi i64 [ 0, %for.7.entry ], [ %k.next, %for.7.latch ]
  %k.more = icmp slt i64 %k, 4
  br i1 %k.more, label %for.7.body, label %for.7.end
for.7.body:
  %.8.within = icmp ult i64 %k, 64
  %.8.amount = select i1 %.8.within, i64 %k, i64 63
  %.8 = ashr i64 8, %.8.amount
  %.9 = icmp slt i64 %t, %.8
  br i1 %.9, label %if.10.then, label %if.10.end
if.10.then:
  %.11.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %t
  %.11 = load float, ptr addrspace(3) %.11.at, align 4
  %.12.within = icmp ult i64 %k, 64
  %.12.amount = select i1 %.12.within, i64 %k, i64 63
  %.12 = ashr i64 8, %.12.amount
  %.13 = add i64 %t, %.12
  %.14.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %.13
  %.14 = load float, ptr addrspace(3) %.14.at, align 4
  %.15.better = fcmp ogt float %.14, %.11
  %.15.nan = fcmp uno float %.14, %.14
  %.15.take = or i1 %.15.better, %.15.nan
  %.15 = select i1 %.15.take, float %.14, float %.11
  %.16.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %t
  store float %.15, ptr addrspace(3) %.16.at, align 4
  br label %if.10.end
if.10.end:
  call void @llvm.nvvm.barrier0()
  br label %for.7.latch
for.7.latch:
  %k.next = add i64 %k, 1
  br label %for.7.head
for.7.end:
  %.17.at = getelementptr float, ptr %kept, i64 0
  %.17 = load float, ptr %.17.at, align 4
  %.18.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 0
  %.18 = load float, ptr addrspace(3) %.18.at, align 4
  %.19 = fsub float %.17, %.18
  %.20 = call float @__nv_expf(float %.19)
  %.21.at = getelementptr float, ptr %kept, i64 0
  store float %.20, ptr %.21.at, align 4
  call void @llvm.nvvm.barrier0()
  %.22.at = getelementptr float, ptr %kept, i64 0
  %.22 = load float, ptr %.22.at, align 4
  %.23.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %t
  store float %.22, ptr addrspace(3) %.23.at, align 4
  call void @llvm.nvvm.barrier0()
  br label %for.24.entry
for.24.entry:
  br label %for.24.head
for.24.head:
  %k.1 = phi i64 [ 0, %for.24.entry ], [ %k.1.next, %for.24.latch ]
  %k.1.more = icmp slt i64 %k.1, 4
  br i1 %k.1.more, label %for.24.body, label %for.24.end
for.24.body:
  %.25.within = icmp ult i64 %k.1, 64
  %.25.amount = select i1 %.25.within, i64 %k.1, i64 63
  %.25 = ashr i64 8, %.25.amount
  %.26 = icmp slt i64 %t, %.25
  br i1 %.26, label %if.27.then, label %if.27.end
if.27.then:
  %.28.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %t
  %.28 = load float, ptr addrspace(3) %.28.at, align 4
  %.29.within = icmp ult i64 %k.1, 64
  %.29.amount = select i1 %.29.within, i64 %k.1, i64 63
  %.29 = ashr i64 8, %.29.amount
  %.30 = add i64 %t, %.29
  %.31.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %.30
  %.31 = load float, ptr addrspace(3) %.31.at, align 4
  %.32 = fadd float %.28, %.31
  %.33.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 %t
  store float %.32, ptr addrspace(3) %.33.at, align 4
  br label %if.27.end
if.27.end:
  call void @llvm.nvvm.barrier0()
  br label %for.24.latch
for.24.latch:
  %k.1.next = add i64 %k.1, 1
  br label %for.24.head
for.24.end:
  %.34.at = getelementptr float, ptr %kept, i64 0
  %.34 = load float, ptr %.34.at, align 4
  %.35.at = getelementptr float, ptr addrspace(3) @softmax.T, i64 0
  %.35 = load float, ptr addrspace(3) %.35.at, align 4
  %.36 = fdiv float %.34, %.35
  %.37 = mul i64 %row, 16
  %.38 = add i64 %.37, %t
  %.39.at = getelementptr float, ptr addrspace(1) %B, i64 %.38
  store float %.36, ptr addrspace(1) %.39.at, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare float @__nv_expf(float) #1

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @softmax, !"maxntidx", i32 16, !"maxntidy", i32 1, !"maxntidz", i32 1}
